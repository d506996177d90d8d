// The inner loops of normalizations, by the widest vectors at hand; normalization.h says what they
// compute.
#ifndef SLUICE_SRC_DEVICE_NORMALIZE_ROWS_H_
#define SLUICE_SRC_DEVICE_NORMALIZE_ROWS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "device/pixel_grid.h"
#include "sluice/tensor.h"

namespace sluice {

// dst[i] = src[i] * scale + bias. Any alignment will do. The two sides must not overlap.
using NormalizeRow = void (*)(const std::byte* src, std::byte* dst, int64_t elements, float scale,
                              float bias);

// A scale and a bias for each channel, again and again, so that a vector may begin at any channel.
struct RepeatedFactors {
  static constexpr int64_t kVectorMax = 64;  // elements of the longest vector

  RepeatedFactors(const ChannelFactors& factors, int64_t count);

  int64_t channels;
  std::array<float, kMaxChannels + kVectorMax> scale;
  std::array<float, kMaxChannels + kVectorMax> bias;
};

// The same of elements whose channels follow each other; the first one is of channel `channel`.
using NormalizeInterleaved = void (*)(const std::byte* src, std::byte* dst, int64_t elements,
                                      const RepeatedFactors& factors, int64_t channel);

// Whole pixels. Each channel has a plane of its own.
struct PlanarRow {
  const std::byte* src = nullptr;  // the first pixel
  std::byte* dst = nullptr;        // its place in the first plane
  int64_t pixels = 0;
  int64_t channels = 0;
  int64_t plane_bytes = 0;                  // from one plane to the next
  const ChannelFactors* factors = nullptr;  // null: `scale` and `bias`
  float scale = 1;
  float bias = 0;
};
using NormalizePlanar = void (*)(const PlanarRow& row);

struct NormalizeLoops {
  NormalizeRow row = nullptr;
  NormalizeInterleaved interleaved = nullptr;
  NormalizePlanar planar = nullptr;
};

// Null if there are none between these types.
const NormalizeLoops* FindNormalize(DType from, DType to);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_NORMALIZE_ROWS_H_
