// One thread's work on pixels that are normalized: up to four units, with the same bits as
// normalization.h.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_NORMALIZE_PIXELS_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_NORMALIZE_PIXELS_H_

#include <cstddef>
#include <cstdint>

#include "device/cuda/cuda_elements.h"
#include "device/cuda/cuda_host_device.h"
#include "device/cuda/cuda_normalize.h"
#include "device/cuda/cuda_pieces.h"

namespace sluice {

template <class Source, class Destination>
SLUICE_HOST_DEVICE void NormalizePixelUnit(const CudaPixels& piece, uint32_t unit) {
  using From = typename Source::Element;
  using To = typename Destination::Element;
  const uint32_t pixel = piece.units_of_pixel.Quotient(unit);
  const uint32_t channel = unit - pixel * piece.units_of_pixel.divisor;
  const uint32_t row = piece.columns.Quotient(pixel);
  const uint32_t column = pixel - row * piece.columns.divisor;
  const std::byte* src =
      piece.src + row * piece.src_row + column * piece.src_pixel + channel * int64_t{sizeof(From)};
  std::byte* dst =
      piece.dst + row * piece.dst_row + column * piece.dst_pixel + channel * piece.dst_channel;
  SLUICE_NO_UNROLL
  for (uint32_t i = 0; i < piece.channels_of_unit; ++i) {
    const uint32_t factor = piece.by_channel ? channel + i : 0;
    const Pack<From, 1> from = LoadPack<From, 1>(src, piece.aligned);
    const float value =
        ScaledAndShifted(Source::From(from.e[0]), piece.scale[factor], piece.bias[factor]);
    Pack<To, 1> to;
    to.e[0] = Destination::To(value);
    StorePack(to, dst, piece.aligned);
    src += sizeof(From);
    dst += piece.dst_channel;
  }
}

template <class Source, class Destination>
struct NormalizePixelUnits {
  static SLUICE_HOST_DEVICE void Do(const CudaPixels& piece, uint32_t first, uint32_t step) {
    SLUICE_NO_UNROLL
    for (uint32_t i = 0; i < kUnitsPerThread; ++i) {
      const uint32_t unit = first + i * step;
      if (unit >= piece.units) return;
      NormalizePixelUnit<Source, Destination>(piece, unit);
    }
  }
};

// Units first, first + step ..., kUnitsPerThread of them or as many as there are.
SLUICE_HOST_DEVICE void NormalizePixels(const CudaPixels& piece, uint32_t first, uint32_t step) {
  NormalizeWith<NormalizePixelUnits>(piece, first, step);
}

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_NORMALIZE_PIXELS_H_
