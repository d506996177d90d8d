// Walking a local tensor stretch by stretch.
#include "workload/local_tensor.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "sluice/tensor.h"

namespace sluice::bench {
namespace {

// Expected values are made in blocks that stay in the first-level cache.
constexpr int64_t kBlockBytes = 16 << 10;

// Turns the highest byte of any float's fill value into that of another integer; inverting all bits
// would turn a zero into a number that is too large to be counted.
constexpr std::byte kFlip{0x43};

int64_t CountDifferent(const std::byte* a, const std::byte* b, int64_t count, int64_t element) {
  const auto size = static_cast<size_t>(element);
  int64_t different = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (std::memcmp(a + i * element, b + i * element, size) != 0) ++different;
  }
  return different;
}

}  // namespace

void FillPart(const LocalPart& part, const Filler& filler, std::byte* data) {
  const int64_t element = DTypeBytes(filler.dtype());
  part.ForEachRun([&](int64_t local, int64_t global, int64_t count) {
    filler.Write(global, count, data + local * element);
  });
}

int64_t CountWrong(const LocalPart& part, const Filler& filler, const std::byte* data) {
  const int64_t element = DTypeBytes(filler.dtype());
  const int64_t block = kBlockBytes / element;
  alignas(64) std::array<std::byte, kBlockBytes> expected;
  int64_t wrong = 0;
  part.ForEachRun([&](int64_t local, int64_t global, int64_t count) {
    for (int64_t done = 0; done < count; done += block) {
      const int64_t now = std::min(block, count - done);
      filler.Write(global + done, now, expected.data());
      const std::byte* found = data + (local + done) * element;
      if (std::memcmp(found, expected.data(), static_cast<size_t>(now * element)) != 0) {
        wrong += CountDifferent(found, expected.data(), now, element);
      }
    }
  });
  return wrong;
}

void FlipBytes(int64_t bytes, const ElementSpan& span, int64_t element_bytes, std::byte* data) {
  using Wide = unsigned __int128;
  const auto total = static_cast<Wide>(span.total);
  for (int64_t byte = element_bytes - 1; byte >= 0 && bytes > 0 && span.total > 0; --byte) {
    // Flip j hits element floor(j * total / count). The first one not before the span:
    const auto count = static_cast<Wide>(std::min(bytes, span.total));
    bytes -= static_cast<int64_t>(count);
    Wide j = (static_cast<Wide>(span.begin) * count + total - 1) / total;
    for (; j < count; ++j) {
      const int64_t at = static_cast<int64_t>(j * total / count) - span.begin;
      if (at >= span.count) break;
      data[at * element_bytes + byte] ^= kFlip;
    }
  }
}

}  // namespace sluice::bench
