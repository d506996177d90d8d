// The casts that exist: all between floating types, none to or from others. And the reductions.
#include "tensor/cast.h"

#include "sluice/tensor.h"

namespace sluice {

bool IsFloating(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return true;
    case DType::kI64:
    case DType::kI32:
    case DType::kI8:
    case DType::kU8:
    case DType::kI16:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
    case DType::kBool:
    case DType::kF8E8M0:
    case DType::kF4E2M1x2:
    case DType::kI4x2:
    case DType::kF8E4M3Fnuz:
    case DType::kF8E5M2Fnuz:
    case DType::kC64:
    case DType::kC128:
      return false;
  }
  return false;
}

bool CastExists(DType from, DType to) { return from == to || (IsFloating(from) && IsFloating(to)); }

bool IsOpaque(DType dtype) { return dtype >= DType::kF8E8M0; }

bool ReductionExists(DType dtype) { return dtype != DType::kBool && !IsOpaque(dtype); }

}  // namespace sluice
