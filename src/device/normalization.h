// Scales and shifts elements, and changes their type and their places on the way. This is done to
// data between its storage format and the model.
#ifndef SLUICE_SRC_DEVICE_NORMALIZATION_H_
#define SLUICE_SRC_DEVICE_NORMALIZATION_H_

#include <cstddef>
#include <cstdint>

#include "device/pixel_grid.h"
#include "sluice/tensor.h"

namespace sluice {

// dst[i] = src[i] * scale + bias, rounded to dst_dtype. Both sides are contiguous, of any
// alignment, and do not overlap.
//
// Computed in f32: the product is rounded, then the sum, then the result to dst_dtype, each to
// nearest even. The bits are the same on every processor. A NaN in src stays NaN: quiet, with its
// sign and the leading bits of its payload. Any other NaN that results is quiet, positive and
// without payload. A scale of 1 and a bias of 0 change no number, but make -0 into 0.
struct Normalization {
  DType src_dtype = DType::kU8;
  DType dst_dtype = DType::kF32;  // NormalizationExists(src_dtype, dst_dtype)
  float scale = 1;
  float bias = 0;
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  int64_t elements = 0;
  DeviceKind src_kind = DeviceKind::kCpu;  // as in StridedCopy
  DeviceKind dst_kind = DeviceKind::kCpu;
  // With channels: `src` holds elements of an item of pixels from number `first` on, of which the
  // grid says what is kept. `dst` is where all that is kept of the item begins: what other elements
  // make of it is not touched. Without channels: as above.
  PixelGrid pixels = {};
  int64_t first = 0;
  // Factors by channel, instead of `scale` and `bias`. Null: these. For at most kMaxChannels.
  const ChannelFactors* factors = nullptr;
};

// True from u8, i16, f16, bf16 and f32 to f16, bf16 and f32.
bool NormalizationExists(DType from, DType to);

// Carries out one normalization. Allocates nothing.
void Normalize(const Normalization& normalization);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_NORMALIZATION_H_
