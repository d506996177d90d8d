// One thread's work on a normalization: up to four units, with the same bits as normalization.h.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_NORMALIZE_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_NORMALIZE_H_

#include <cstdint>

#include "device/cuda/cuda_cast.h"
#include "device/cuda/cuda_elements.h"
#include "device/cuda/cuda_host_device.h"
#include "device/cuda/cuda_pieces.h"
#include "sluice/tensor.h"

namespace sluice {

// Rounds twice: what includes this must be compiled so that no multiplication is fused with the
// addition that follows it.
SLUICE_HOST_DEVICE float ScaledAndShifted(float value, float scale, float bias) {
#ifdef __CUDA_ARCH__
  const float sum = __fadd_rn(__fmul_rn(value, scale), bias);
#else
  const float product = value * scale;
  const float sum = product + bias;
#endif
  if (!IsNaN(sum)) return sum;
  if (IsNaN(value)) return BitsAs<float>(BitsAs<uint32_t>(value) | kF32Quiet);
  return QuietNaN<float>();
}

template <typename T>
struct IntegerElement {
  using Element = T;
  static SLUICE_HOST_DEVICE float From(T element) { return static_cast<float>(element); }
};

template <class Source, class Destination, int kCount>
SLUICE_HOST_DEVICE void NormalizeUnit(const CudaNormalization& piece, uint32_t unit, bool aligned) {
  using From = typename Source::Element;
  using To = typename Destination::Element;
  const int64_t elements = int64_t{unit} * kCount;
  const auto src = LoadPack<From, kCount>(piece.src + elements * int64_t{sizeof(From)}, aligned);
  Pack<To, kCount> dst;
  SLUICE_UNROLL
  for (int i = 0; i < kCount; ++i) {
    dst.e[i] = Destination::To(ScaledAndShifted(Source::From(src.e[i]), piece.scale, piece.bias));
  }
  StorePack(dst, piece.dst + elements * int64_t{sizeof(To)}, aligned);
}

template <class Source, class Destination>
struct NormalizeUnits {
  static SLUICE_HOST_DEVICE void Do(const CudaNormalization& piece, uint32_t first, uint32_t step) {
    constexpr int kFull = kFullUnit<typename Source::Element, typename Destination::Element>;
    SLUICE_NO_UNROLL
    for (uint32_t i = 0; i < kUnitsPerThread; ++i) {
      const uint32_t unit = first + i * step;
      if (unit >= piece.units) return;
      if (piece.unit == CudaUnit::kFull) {
        NormalizeUnit<Source, Destination, kFull>(piece, unit, true);
      } else {
        NormalizeUnit<Source, Destination, 1>(piece, unit, piece.unit == CudaUnit::kElement);
      }
    }
  }
};

// Does what Units<Source, Destination> does, with the piece's types.
template <template <class Source, class Destination> class Units, class Source, class Piece>
SLUICE_HOST_DEVICE void NormalizeFrom(const Piece& piece, uint32_t first, uint32_t step) {
  switch (piece.dst_dtype) {
    case DType::kF16:
      return Units<Source, SmallElement<F16>>::Do(piece, first, step);
    case DType::kBF16:
      return Units<Source, SmallElement<BF16>>::Do(piece, first, step);
    default:
      return Units<Source, WholeElement<float>>::Do(piece, first, step);
  }
}

template <template <class Source, class Destination> class Units, class Piece>
SLUICE_HOST_DEVICE void NormalizeWith(const Piece& piece, uint32_t first, uint32_t step) {
  switch (piece.src_dtype) {
    case DType::kU8:
      return NormalizeFrom<Units, IntegerElement<uint8_t>>(piece, first, step);
    case DType::kI16:
      return NormalizeFrom<Units, IntegerElement<int16_t>>(piece, first, step);
    case DType::kF16:
      return NormalizeFrom<Units, SmallElement<F16>>(piece, first, step);
    case DType::kBF16:
      return NormalizeFrom<Units, SmallElement<BF16>>(piece, first, step);
    default:
      return NormalizeFrom<Units, WholeElement<float>>(piece, first, step);
  }
}

// Units first, first + step ..., kUnitsPerThread of them or as many as there are.
SLUICE_HOST_DEVICE void Normalize(const CudaNormalization& piece, uint32_t first, uint32_t step) {
  NormalizeWith<NormalizeUnits>(piece, first, step);
}

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_NORMALIZE_H_
