// Element-wise folds of one row into another, by the widest vectors at hand.
//
// Floats: a NaN on either side, and what has no value, give the one NaN that is quiet, positive and
// without payload, so that results are the same bits on every processor.
#ifndef SLUICE_SRC_DEVICE_REDUCE_ROWS_H_
#define SLUICE_SRC_DEVICE_REDUCE_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

// dst[i] = dst[i] op src[i]. Any alignment will do.
using FoldRow = void (*)(const std::byte* src, std::byte* dst, int64_t elements);

// Sums serve for averages. Types of 8 and 16 bits are computed in f32 and rounded. Integers wrap.
// There is no fold of bool.
FoldRow FindFold(DType dtype, ReduceOp op);

// dst[i] = dst[i] / divisor, for floating types. The divisor is first rounded to the type that is
// computed in.
using DivideRow = void (*)(std::byte* dst, int64_t elements, int64_t divisor);
DivideRow FindDivide(DType dtype);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_REDUCE_ROWS_H_
