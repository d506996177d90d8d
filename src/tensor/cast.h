// Says which element types can be cast into which, and which can be reduced.
#ifndef SLUICE_SRC_TENSOR_CAST_H_
#define SLUICE_SRC_TENSOR_CAST_H_

#include "sluice/tensor.h"

namespace sluice {

// True for f64, f32, f16, bf16, f8e4m3 and f8e5m2.
bool IsFloating(DType dtype);

// True if elements of `from` can become elements of `to`: among the floating types, and where
// nothing changes.
bool CastExists(DType from, DType to);

// True from DType::kF8E8M0 on: elements that only move.
bool IsOpaque(DType dtype);

// True if contributions of the type can be reduced: neither of bool nor of opaque types.
bool ReductionExists(DType dtype);

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_CAST_H_
