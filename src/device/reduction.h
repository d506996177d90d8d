// Adds one contribution of a reduction to what is there already.
#ifndef SLUICE_SRC_DEVICE_REDUCTION_H_
#define SLUICE_SRC_DEVICE_REDUCTION_H_

#include <cstddef>
#include <cstdint>

#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

// Stores dst[i] op src[i] to dst[i], rounded to `dtype`. Then, if `divisor` is above 1, divides
// dst[i] by `divisor` and rounds once more. The op kAvg adds as kSum does: who adds the last
// contribution gives the divisor. Both sides are contiguous, of any alignment, and do not overlap.
//
// Types of 8 and 16 bits are computed in f32. Floats: a NaN on either side gives NaN, and any NaN
// that results is quiet, positive and without payload. The ops kMax and kMin keep dst of equal
// values, also of zeros. Integers wrap, and divide toward zero. There is none of bool, and of
// opaque types.
struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kF32;
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  int64_t elements = 0;
  int64_t divisor = 1;
  DeviceKind src_kind = DeviceKind::kCpu;  // as in StridedCopy
  DeviceKind dst_kind = DeviceKind::kCpu;
};

// Carries out one reduction. Allocates nothing.
void Reduce(const Reduction& reduction);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_REDUCTION_H_
