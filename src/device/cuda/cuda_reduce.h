// One thread's work on a reduction: up to four units, with the same bits as reduction.h.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_REDUCE_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_REDUCE_H_

#include <cstdint>
#include <type_traits>

#include "device/cuda/cuda_cast.h"
#include "device/cuda/cuda_elements.h"
#include "device/cuda/cuda_host_device.h"
#include "device/cuda/cuda_pieces.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

template <typename T>
SLUICE_HOST_DEVICE T WithOneNaN(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return IsNaN(value) ? QuietNaN<T>() : value;
  } else {
    return value;
  }
}

// Integers wrap: they are added and multiplied as unsigned numbers.
template <typename T>
struct Wrapping {
  using Type = uint64_t;
};
template <>
struct Wrapping<float> {
  using Type = float;
};
template <>
struct Wrapping<double> {
  using Type = double;
};

// Equal values keep what is in dst.
template <ReduceOp kOp, typename T>
SLUICE_HOST_DEVICE T Folded(T dst, T src) {
  using Wide = typename Wrapping<T>::Type;
  if constexpr (kOp == ReduceOp::kMax || kOp == ReduceOp::kMin) {
    if constexpr (std::is_floating_point_v<T>) {
      if (IsNaN(dst) || IsNaN(src)) return QuietNaN<T>();
    }
    return (kOp == ReduceOp::kMax ? src > dst : src < dst) ? src : dst;
  } else if constexpr (kOp == ReduceOp::kProduct) {
    return WithOneNaN(static_cast<T>(static_cast<Wide>(dst) * static_cast<Wide>(src)));
  } else {
    return WithOneNaN(static_cast<T>(static_cast<Wide>(dst) + static_cast<Wide>(src)));
  }
}

template <typename T>
SLUICE_HOST_DEVICE T Divided(T value, int64_t divisor) {
  if constexpr (std::is_floating_point_v<T>) {
    return WithOneNaN(value / static_cast<T>(divisor));
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    return static_cast<T>(static_cast<Wide>(value) / static_cast<Wide>(divisor));
  }
}

template <ReduceOp kOp, class Type, int kCount>
SLUICE_HOST_DEVICE void ReduceUnit(const CudaReduction& piece, uint32_t unit, bool aligned) {
  using Element = typename Type::Element;
  const int64_t offset = int64_t{unit} * kCount * int64_t{sizeof(Element)};
  const auto src = LoadPack<Element, kCount>(piece.src + offset, aligned);
  auto dst = LoadPack<Element, kCount>(piece.dst + offset, aligned);
  SLUICE_UNROLL
  for (int i = 0; i < kCount; ++i) {
    dst.e[i] = Type::To(Folded<kOp>(Type::From(dst.e[i]), Type::From(src.e[i])));
  }
  // The sum was rounded to the element's type, and the quotient is rounded once more.
  if (piece.divisor > 1) {
    SLUICE_UNROLL
    for (int i = 0; i < kCount; ++i) {
      dst.e[i] = Type::To(Divided(Type::From(dst.e[i]), piece.divisor));
    }
  }
  StorePack(dst, piece.dst + offset, aligned);
}

template <ReduceOp kOp, class Type>
SLUICE_HOST_DEVICE void ReduceUnits(const CudaReduction& piece, uint32_t first, uint32_t step) {
  constexpr int kFull = kFullUnit<typename Type::Element, uint8_t>;
  SLUICE_NO_UNROLL
  for (uint32_t i = 0; i < kUnitsPerThread; ++i) {
    const uint32_t unit = first + i * step;
    if (unit >= piece.units) return;
    if (piece.unit == CudaUnit::kFull) {
      ReduceUnit<kOp, Type, kFull>(piece, unit, true);
    } else {
      ReduceUnit<kOp, Type, 1>(piece, unit, piece.unit == CudaUnit::kElement);
    }
  }
}

template <class Type>
SLUICE_HOST_DEVICE void ReduceAs(const CudaReduction& piece, uint32_t first, uint32_t step) {
  switch (piece.op) {
    case ReduceOp::kMax:
      return ReduceUnits<ReduceOp::kMax, Type>(piece, first, step);
    case ReduceOp::kMin:
      return ReduceUnits<ReduceOp::kMin, Type>(piece, first, step);
    case ReduceOp::kProduct:
      return ReduceUnits<ReduceOp::kProduct, Type>(piece, first, step);
    default:
      return ReduceUnits<ReduceOp::kSum, Type>(piece, first, step);
  }
}

// Units first, first + step ..., kUnitsPerThread of them or as many as there are.
SLUICE_HOST_DEVICE void Reduce(const CudaReduction& piece, uint32_t first, uint32_t step) {
  switch (piece.dtype) {
    case DType::kF64:
      return ReduceAs<WholeElement<double>>(piece, first, step);
    case DType::kF32:
      return ReduceAs<WholeElement<float>>(piece, first, step);
    case DType::kF16:
      return ReduceAs<SmallElement<F16>>(piece, first, step);
    case DType::kBF16:
      return ReduceAs<SmallElement<BF16>>(piece, first, step);
    case DType::kF8E4M3:
      return ReduceAs<SmallElement<F8E4M3>>(piece, first, step);
    case DType::kF8E5M2:
      return ReduceAs<SmallElement<F8E5M2>>(piece, first, step);
    case DType::kI64:
      return ReduceAs<WholeElement<int64_t>>(piece, first, step);
    case DType::kI32:
      return ReduceAs<WholeElement<int32_t>>(piece, first, step);
    case DType::kI8:
      return ReduceAs<WholeElement<int8_t>>(piece, first, step);
    case DType::kU8:
      return ReduceAs<WholeElement<uint8_t>>(piece, first, step);
    case DType::kI16:
      return ReduceAs<WholeElement<int16_t>>(piece, first, step);
    case DType::kU16:
      return ReduceAs<WholeElement<uint16_t>>(piece, first, step);
    case DType::kU32:
      return ReduceAs<WholeElement<uint32_t>>(piece, first, step);
    case DType::kU64:
      return ReduceAs<WholeElement<uint64_t>>(piece, first, step);
    case DType::kBool:
    case DType::kF8E8M0:
    case DType::kF4E2M1x2:
    case DType::kI4x2:
    case DType::kF8E4M3Fnuz:
    case DType::kF8E5M2Fnuz:
    case DType::kC64:
    case DType::kC128:
      return;  // there is none
  }
}

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_REDUCE_H_
