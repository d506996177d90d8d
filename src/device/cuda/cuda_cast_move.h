// One thread's work on a piece of a copy between different types: it casts up to four units.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_CAST_MOVE_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_CAST_MOVE_H_

#include <cstddef>
#include <cstdint>

#include "device/cuda/cuda_cast.h"
#include "device/cuda/cuda_elements.h"
#include "device/cuda/cuda_host_device.h"
#include "device/cuda/cuda_pieces.h"
#include "sluice/tensor.h"

namespace sluice {

// Sources: what becomes of an element on its way to a type of 8 or 16 bits, and to f32. Between
// these two ways only f64 makes a difference.
template <class Format>
struct SmallSource {
  using Element = typename Format::Code;
  static SLUICE_HOST_DEVICE float ToNarrow(Element element) { return Widen<Format>(element); }
  static SLUICE_HOST_DEVICE float ToWide(Element element) { return Widen<Format>(element); }
};
struct F32Source {
  using Element = float;
  static SLUICE_HOST_DEVICE float ToNarrow(float element) { return element; }
  static SLUICE_HOST_DEVICE float ToWide(float element) { return element; }
};
struct F64Source {
  using Element = double;
  static SLUICE_HOST_DEVICE float ToNarrow(double element) { return ToOddF32(element); }
  static SLUICE_HOST_DEVICE float ToWide(double element) { return ToF32(element); }
};

// Destinations.
template <class Format>
struct SmallDestination {
  using Element = typename Format::Code;
  template <class Source>
  static SLUICE_HOST_DEVICE Element Cast(typename Source::Element element) {
    return Narrow<Format>(Source::ToNarrow(element));
  }
};
struct F32Destination {
  using Element = float;
  template <class Source>
  static SLUICE_HOST_DEVICE float Cast(typename Source::Element element) {
    return Source::ToWide(element);
  }
};
struct F64Destination {
  using Element = double;
  template <class Source>
  static SLUICE_HOST_DEVICE double Cast(typename Source::Element element) {
    return ToF64(Source::ToWide(element));
  }
};

template <class Source, class Destination, int kCount>
SLUICE_HOST_DEVICE void CastUnit(const std::byte* src, std::byte* dst, bool aligned) {
  const auto from = LoadPack<typename Source::Element, kCount>(src, aligned);
  Pack<typename Destination::Element, kCount> to;
  SLUICE_UNROLL
  for (int i = 0; i < kCount; ++i) to.e[i] = Destination::template Cast<Source>(from.e[i]);
  StorePack(to, dst, aligned);
}

template <class Source, class Destination>
SLUICE_HOST_DEVICE void CastUnits(const CudaMove& piece, uint32_t first, uint32_t step) {
  constexpr int kFull = kFullUnit<typename Source::Element, typename Destination::Element>;
  SLUICE_NO_UNROLL
  for (uint32_t i = 0; i < kUnitsPerThread; ++i) {
    const uint32_t unit = first + i * step;
    if (unit >= piece.units) return;
    const CudaPlace place = PlaceOf(piece, unit);
    const std::byte* const src = piece.src + place.src;
    std::byte* const dst = piece.dst + place.dst;
    if (piece.unit == CudaUnit::kFull) {
      CastUnit<Source, Destination, kFull>(src, dst, true);
    } else {
      CastUnit<Source, Destination, 1>(src, dst, piece.unit == CudaUnit::kElement);
    }
  }
}

template <class Source>
SLUICE_HOST_DEVICE void CastFrom(const CudaMove& piece, uint32_t first, uint32_t step) {
  switch (piece.dst_dtype) {
    case DType::kF16:
      return CastUnits<Source, SmallDestination<F16>>(piece, first, step);
    case DType::kBF16:
      return CastUnits<Source, SmallDestination<BF16>>(piece, first, step);
    case DType::kF8E4M3:
      return CastUnits<Source, SmallDestination<F8E4M3>>(piece, first, step);
    case DType::kF8E5M2:
      return CastUnits<Source, SmallDestination<F8E5M2>>(piece, first, step);
    case DType::kF32:
      return CastUnits<Source, F32Destination>(piece, first, step);
    default:
      return CastUnits<Source, F64Destination>(piece, first, step);
  }
}

// Units first, first + step ..., kUnitsPerThread of them or as many as there are.
SLUICE_HOST_DEVICE void Cast(const CudaMove& piece, uint32_t first, uint32_t step) {
  switch (piece.src_dtype) {
    case DType::kF16:
      return CastFrom<SmallSource<F16>>(piece, first, step);
    case DType::kBF16:
      return CastFrom<SmallSource<BF16>>(piece, first, step);
    case DType::kF8E4M3:
      return CastFrom<SmallSource<F8E4M3>>(piece, first, step);
    case DType::kF8E5M2:
      return CastFrom<SmallSource<F8E5M2>>(piece, first, step);
    case DType::kF32:
      return CastFrom<F32Source>(piece, first, step);
    default:
      return CastFrom<F64Source>(piece, first, step);
  }
}

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_CAST_MOVE_H_
