// Folds a row, and divides it piece by piece where that is asked for.
#include "device/reduction.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/reduce_rows.h"
#include "sluice/tensor.h"
#include "tensor/check.h"

namespace sluice {
namespace {

// Elements that are folded and then divided at a time: they stay in the first cache meanwhile.
constexpr int64_t kPieceElements = 1024;

template <typename T>
void DivideIntegers(std::byte* dst, int64_t elements, int64_t divisor) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  for (int64_t i = 0; i < elements; ++i) {
    T value;
    std::memcpy(&value, dst + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    value = static_cast<T>(static_cast<Wide>(value) / static_cast<Wide>(divisor));
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
    case DType::kI16:
      return &DivideIntegers<int16_t>;
    case DType::kU16:
      return &DivideIntegers<uint16_t>;
    case DType::kU32:
      return &DivideIntegers<uint32_t>;
    case DType::kU64:
      return &DivideIntegers<uint64_t>;
    default:
      return FindDivide(dtype);
  }
}

}  // namespace

void Reduce(const Reduction& reduction) {
  SLUICE_CHECK(reduction.elements >= 0, "reduction: fewer than no elements");
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

}  // namespace sluice
