// Element-wise folds of two rows into one, by the widest vectors at hand.
//
// Floats: a NaN on either side, and what has no value, give one and the same NaN. This NaN is
// quiet, positive and without payload, so that results are the same bits on every processor.
#ifndef SLUICE_SRC_DEVICE_REDUCE_ROWS_H_
#define SLUICE_SRC_DEVICE_REDUCE_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

// dst[i] = left[i] op right[i]: kMax and kMin keep left of equal values. dst is left, or overlaps
// neither. Any alignment will do.
using FoldRow = void (*)(const std::byte* left, const std::byte* right, std::byte* dst,
                         int64_t elements);

// Sums serve for averages. Types of 8 and 16 bits are computed in f32 and rounded. Integers wrap.
// There is no fold of bool.
FoldRow FindFold(DType dtype, ReduceOp op);

// The same with streaming stores for whole lines of dst, as stream_rows.h copies them; null where
// the vectors are too short for these.
FoldRow FindStreamingFold(DType dtype, ReduceOp op);

// dst[i] = dst[i] / divisor. For floating types the divisor is first rounded to the type that is
// computed in; integers divide toward zero. There is none of bool.
using DivideRow = void (*)(std::byte* dst, int64_t elements, int64_t divisor);
DivideRow FindDivide(DType dtype);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_REDUCE_ROWS_H_
