// The casts that exist: all between floating types, none to or from integers and bool.
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
      return false;
  }
  return false;
}

bool CastExists(DType from, DType to) { return from == to || (IsFloating(from) && IsFloating(to)); }

}  // namespace sluice
