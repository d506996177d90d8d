// Walking a local tensor stretch by stretch.
#include "workload/local_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "sluice/tensor.h"
#include "workload/element.h"
#include "workload/fill.h"

namespace sluice::bench {
namespace {

// Expected values are made in blocks that stay in the first-level cache.
constexpr int64_t kBlockBytes = 16 << 10;

// A sample has this many bytes of so many.
constexpr int64_t kSampleBytes = 4 << 10;
constexpr int64_t kSampledBytes = 64 << 10;

// Turns the highest byte of any float's fill value into that of another integer. Inverting all bits
// would turn a zero into a number that is too large to be counted.
constexpr std::byte kFlip{0x43};

template <typename Codec>
bool IsNoNumber(const std::byte* element) {
  if constexpr (std::is_integral_v<typename Codec::Wide>) {
    return false;
  } else {
    typename Codec::Unit unit;
    std::memcpy(&unit, element, sizeof(unit));
    return std::isnan(Codec::Load(unit));
  }
}

template <typename Codec>
int64_t CountDifferentAs(const std::byte* found, const std::byte* expected, int64_t count) {
  constexpr size_t kBytes = sizeof(typename Codec::Unit);
  std::array<std::byte, kBytes> poison;
  poison.fill(std::byte{kPoisonByte});
  int64_t different = 0;
  for (int64_t i = 0; i < count; ++i, found += kBytes, expected += kBytes) {
    if (std::memcmp(found, expected, kBytes) == 0) continue;
    const bool like = IsNoNumber<Codec>(found) && IsNoNumber<Codec>(expected) &&
                      std::memcmp(found, poison.data(), kBytes) != 0;
    if (!like) ++different;
  }
  return different;
}

int64_t CountDifferent(DType dtype, const std::byte* found, const std::byte* expected,
                       int64_t count) {
  return WithCodec(
      dtype, [&](auto codec) { return CountDifferentAs<decltype(codec)>(found, expected, count); });
}

// Calls of(begin, count) for what a sample has of elements `begin` to `end` of a tensor of `total`.
template <typename Of>
void ForEachSample(int64_t begin, int64_t end, int64_t total, int64_t element, const Of& of) {
  const int64_t length = kSampleBytes / element;
  const int64_t step = kSampledBytes / element;
  const int64_t last = std::max<int64_t>(0, total - length);
  for (int64_t at = begin / step * step; at < end; at += step) {
    const int64_t from = std::max(at, begin);
    const int64_t to = std::min({at + length, end, last});
    if (from < to) of(from, to - from);
  }
  if (end > last) of(std::max(begin, last), end - std::max(begin, last));
}

int64_t Truncate(double value) {
  if (!(std::fabs(value) < 9.2e18)) return 0;
  return static_cast<int64_t>(value);
}

template <typename Codec>
int64_t ToInteger(typename Codec::Unit unit) {
  const auto value = Codec::Load(unit);
  if constexpr (std::is_integral_v<decltype(value)>) {
    return static_cast<int64_t>(value);
  } else {
    return Truncate(static_cast<double>(value));
  }
}

template <typename Codec>
void Sum(const std::byte* data, int64_t count, Fingerprint* result) {
  const auto* values = reinterpret_cast<const typename Codec::Unit*>(data);
  uint64_t plain = 0;
  uint64_t ordered = 0;
  for (int64_t p = 0; p < count; ++p) {
    const auto value = static_cast<uint64_t>(ToInteger<Codec>(values[p]));
    plain += value;
    ordered += (static_cast<uint64_t>(p) + 1) * value;
  }
  result->checksum = static_cast<int64_t>(plain);
  result->ordered_checksum = ordered;
}

}  // namespace

void FillPart(const LocalPart& part, const Values& values, std::byte* data) {
  const int64_t element = DTypeBytes(values.dtype());
  part.ForEachRun([&](int64_t local, int64_t global, int64_t count) {
    values.Write(global, count, data + local * element);
  });
}

int64_t CountWrong(const LocalPart& part, const Values& values, const std::byte* data,
                   bool sampled) {
  const int64_t element = DTypeBytes(values.dtype());
  const int64_t block = kBlockBytes / element;
  alignas(64) std::array<std::byte, kBlockBytes> expected;
  int64_t wrong = 0;
  const auto check = [&](int64_t local, int64_t global, int64_t count) {
    for (int64_t done = 0; done < count; done += block) {
      const int64_t now = std::min(block, count - done);
      values.Write(global + done, now, expected.data());
      const std::byte* found = data + (local + done) * element;
      if (std::memcmp(found, expected.data(), static_cast<size_t>(now * element)) != 0) {
        wrong += CountDifferent(values.dtype(), found, expected.data(), now);
      }
    }
  };
  part.ForEachRun([&](int64_t local, int64_t global, int64_t count) {
    if (!sampled) return check(local, global, count);
    ForEachSample(local, local + count, part.elements(), element,
                  [&](int64_t at, int64_t length) { check(at, global + at - local, length); });
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

Fingerprint TakeFingerprint(const LocalPart& part, DType dtype, const std::byte* data) {
  Fingerprint result;
  result.local_shape = part.shape();
  result.first = part.first();
  result.last = part.last();
  WithCodec(dtype, [&](auto codec) { Sum<decltype(codec)>(data, part.elements(), &result); });
  return result;
}

}  // namespace sluice::bench
