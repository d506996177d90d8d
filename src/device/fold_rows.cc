// Blocks that stay in the first cache from the first source to the last.
#include "device/fold_rows.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "device/float_mode.h"
#include "device/prefetcher.h"
#include "device/stream_rows.h"
#include "tensor/check.h"

namespace sluice {
namespace {

// A block's result so far, and what is added to it, fit the first cache several times.
constexpr int64_t kBlockBytes = 4 << 10;

}  // namespace

RowFold::RowFold(ReduceOp op, DType dtype, int64_t divisor)
    : fold_(FindFold(dtype, op)),
      stream_(FindStreamingFold(dtype, op)),
      divide_(divisor > 1 ? FindDivide(dtype) : nullptr),
      divisor_(divisor),
      element_bytes_(DTypeBytes(dtype)) {}

void RowFold::Fold(absl::Span<const std::byte* const> sources, std::byte* dst, int64_t elements,
                   WriteHint stores) const {
  SLUICE_CHECK(sources.size() >= 2, "fold: there is one source");
  const PromisedFloatMode mode;
  if (stores == WriteHint::kStreaming && StreamingPays(dst, {}, elements * element_bytes_)) {
    return StreamBlocks(sources, dst, elements);
  }
  if (sources.size() == 2 && divide_ == nullptr) {
    return fold_(sources[0], sources[1], dst, elements);
  }
  const int64_t block = kBlockBytes / element_bytes_;
  for (int64_t at = 0; at < elements; at += block) {
    std::byte* const to = dst + at * element_bytes_;
    const int64_t count = std::min(block, elements - at);
    FoldBlock(sources, at, to, count);
    if (divide_ != nullptr) divide_(to, count, divisor_);
  }
}

void RowFold::FoldBlock(absl::Span<const std::byte* const> sources, int64_t at, std::byte* dst,
                        int64_t elements) const {
  const int64_t offset = at * element_bytes_;
  const std::byte* left = sources[0] + offset;
  for (const std::byte* const right : sources.subspan(1)) {
    fold_(left, right + offset, dst, elements);
    left = dst;
  }
}

// The last step streams what it computes; where it cannot, the block's result is copied.
void RowFold::StreamBlocks(absl::Span<const std::byte* const> sources, std::byte* dst,
                           int64_t elements) const {
  const bool last_streams = stream_ != nullptr && divide_ == nullptr;
  if (last_streams && sources.size() == 2) return stream_(sources[0], sources[1], dst, elements);
  alignas(kCacheLineBytes) std::array<std::byte, kBlockBytes> scratch;
  // The first block is shorter, so that all others begin a line.
  const auto past_line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(dst) % kCacheLineBytes);
  int64_t count = 0;
  for (int64_t at = 0; at < elements; at += count) {
    const int64_t offset = at * element_bytes_;
    const int64_t block = (kBlockBytes - (at == 0 ? past_line : 0)) / element_bytes_;
    count = std::min(block, elements - at);
    FoldBlock(last_streams ? sources.first(sources.size() - 1) : sources, at, scratch.data(),
              count);
    if (last_streams) {
      stream_(scratch.data(), sources.back() + offset, dst + offset, count);
      continue;
    }
    if (divide_ != nullptr) divide_(scratch.data(), count, divisor_);
    StreamRows(scratch.data(), dst + offset, {}, count * element_bytes_);
  }
}

}  // namespace sluice
