// Chooses between folds, and divides integers.
#include "device/fold_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/float_mode.h"
#include "device/stream_rows.h"
#include "tensor/check.h"

namespace sluice {
namespace {

// Stay in the first cache until they are divided.
constexpr int64_t kBlockElements = 1024;

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
  if (divide_ == nullptr) {
    const bool streams = stream_ != nullptr && stores == WriteHint::kStreaming &&
                         StreamingPays(dst, {}, elements * element_bytes_);
    return (streams ? stream_ : fold_)(sources, dst, 0, elements, divisor_);
  }
  for (int64_t at = 0; at < elements; at += kBlockElements) {
    const int64_t end = std::min(at + kBlockElements, elements);
    fold_(sources, dst, at, end, 1);
    divide_(dst + at * element_bytes_, end - at, divisor_);
  }
}

}  // namespace sluice
