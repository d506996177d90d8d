// Reductions in the type itself where processors compute in it, through rows of f32 elsewhere.
#include "device/reduction.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/cast_rows.h"
#include "device/reduce_rows.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "tensor/cast.h"
#include "tensor/check.h"

namespace sluice {
namespace {

// Elements that are folded and then divided at a time: what lies between stays in the first cache.
constexpr int64_t kPieceElements = 1024;

template <typename T>
void DivideIntegers(std::byte* dst, int64_t elements, int64_t divisor) {
  for (int64_t i = 0; i < elements; ++i) {
    T value;
    std::memcpy(&value, dst + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    value = static_cast<T>(static_cast<int64_t>(value) / divisor);
    std::memcpy(dst + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
  }
}

DivideRow DivisionOf(DType dtype) {
  switch (dtype) {
    case DType::kI64:
      return &DivideIntegers<int64_t>;
    case DType::kI32:
      return &DivideIntegers<int32_t>;
    case DType::kI8:
      return &DivideIntegers<int8_t>;
    case DType::kU8:
      return &DivideIntegers<uint8_t>;
    default:
      return FindDivide(dtype);
  }
}

// In the type that the elements have.
void ReduceInPlace(const Reduction& reduction) {
  const FoldRow fold = FindFold(reduction.dtype, reduction.op);
  if (reduction.divisor <= 1) return fold(reduction.src, reduction.dst, reduction.elements);
  const DivideRow divide = DivisionOf(reduction.dtype);
  const int64_t bytes = DTypeBytes(reduction.dtype);
  for (int64_t i = 0; i < reduction.elements; i += kPieceElements) {
    const int64_t piece = std::min(kPieceElements, reduction.elements - i);
    fold(reduction.src + i * bytes, reduction.dst + i * bytes, piece);
    divide(reduction.dst + i * bytes, piece, reduction.divisor);
  }
}

// Each step is rounded to the elements' own type.
void ReduceThroughF32(const Reduction& reduction) {
  const RowCast widen(reduction.dtype, DType::kF32);
  const RowCast narrow(DType::kF32, reduction.dtype);
  const FoldRow fold = FindFold(DType::kF32, reduction.op);
  const DivideRow divide = FindDivide(DType::kF32);
  const int64_t bytes = DTypeBytes(reduction.dtype);
  alignas(64) std::byte left[kPieceElements * sizeof(float)];
  alignas(64) std::byte right[kPieceElements * sizeof(float)];
  for (int64_t i = 0; i < reduction.elements; i += kPieceElements) {
    const int64_t piece = std::min(kPieceElements, reduction.elements - i);
    std::byte* const dst = reduction.dst + i * bytes;
    widen.Cast(dst, left, piece);
    widen.Cast(reduction.src + i * bytes, right, piece);
    fold(right, left, piece);
    narrow.Cast(left, dst, piece);
    if (reduction.divisor <= 1) continue;
    widen.Cast(dst, left, piece);
    divide(left, piece, reduction.divisor);
    narrow.Cast(left, dst, piece);
  }
}

}  // namespace

void Reduce(const Reduction& reduction) {
  SLUICE_CHECK(reduction.elements >= 0, "reduction: fewer than no elements");
  if (IsFloating(reduction.dtype) && DTypeBytes(reduction.dtype) <= 2) {
    return ReduceThroughF32(reduction);
  }
  ReduceInPlace(reduction);
}

}  // namespace sluice
