// Element-wise folds of rows into one, by the widest vectors at hand.
//
// Floats: a NaN on either side, and what has no value, give one and the same NaN. This NaN is
// quiet, positive and without payload, so that results are the same bits on every processor.
#ifndef SLUICE_SRC_DEVICE_REDUCE_ROWS_H_
#define SLUICE_SRC_DEVICE_REDUCE_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

// Folds elements [begin, end) of the sources into dst, in the order that RowFold::Fold has. Each
// step's result is rounded as it would be stored. kMax and kMin keep the left one of equal values.
// Two sources or more, of any alignment. dst is the first of them, or overlaps none. The divisor is
// first rounded to the type that is computed in. A divisor of 1, or with a FindDivide, is ignored.
using FoldRows = void (*)(absl::Span<const std::byte* const> sources, std::byte* dst, int64_t begin,
                          int64_t end, int64_t divisor);

// Sums serve for averages. Types of 8 and 16 bits are computed in f32 and rounded. Integers wrap.
// There is no fold of bool.
FoldRows FindFold(DType dtype, ReduceOp op);

// The same with streaming stores for whole lines of dst, as stream_rows.h copies them; null where
// the vectors are too short for these.
FoldRows FindStreamingFold(DType dtype, ReduceOp op);

// dst[i] = dst[i] / divisor, toward zero: for integers, whose folds do not divide. Null for floats.
using DivideRow = void (*)(std::byte* dst, int64_t elements, int64_t divisor);
DivideRow FindDivide(DType dtype);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_REDUCE_ROWS_H_
