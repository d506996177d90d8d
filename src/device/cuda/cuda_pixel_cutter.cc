// Makes pieces of boxes: a few for each item, or part of one.
#include "device/cuda/cuda_pixel_cutter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/cuda/cuda_pieces.h"
#include "device/normalization.h"
#include "device/pixel_grid.h"
#include "sluice/tensor.h"

namespace sluice {

PixelCutter::PixelCutter(const Normalization& how)
    : how_(how),
      boxes_(how.pixels, how.pixels.KeptBefore(how.first),
             how.pixels.KeptBefore(how.first + how.elements), kMaxPieceUnits) {}

bool PixelCutter::Next(CudaPixels* piece) {
  PixelBox box;
  if (!boxes_.Next(&box)) return false;
  const PixelGrid& grid = how_.pixels;
  const int64_t src_bytes = DTypeBytes(how_.src_dtype);
  const int64_t dst_bytes = DTypeBytes(how_.dst_dtype);
  *piece = CudaPixels();
  piece->src =
      how_.src + (grid.SourceOf(box.row, box.column, box.channel) - how_.first) * src_bytes;
  piece->dst = how_.dst + grid.DestinationOf(box.row, box.column, box.channel) * dst_bytes;
  piece->src_pixel = grid.channels * src_bytes;
  piece->dst_pixel = (grid.planar ? 1 : grid.channels) * dst_bytes;
  piece->src_row = grid.width * piece->src_pixel;
  piece->dst_row = grid.columns * piece->dst_pixel;
  piece->dst_channel = (grid.planar ? grid.rows * grid.columns : 1) * dst_bytes;
  const auto channels = static_cast<uint32_t>(box.channels);
  piece->units_of_pixel = FastDivisor(grid.planar ? 1 : channels);
  piece->channels_of_unit = grid.planar ? channels : 1;
  piece->columns = FastDivisor(static_cast<uint32_t>(box.columns));
  piece->units = static_cast<uint32_t>(box.rows * box.columns) * piece->units_of_pixel.divisor;
  piece->src_dtype = how_.src_dtype;
  piece->dst_dtype = how_.dst_dtype;
  const auto is_multiple = [](const std::byte* at, int64_t bytes) {
    return reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(bytes) == 0;
  };
  piece->aligned = is_multiple(piece->src, src_bytes) && is_multiple(piece->dst, dst_bytes);
  piece->by_channel = how_.factors != nullptr;
  piece->scale[0] = how_.scale;
  piece->bias[0] = how_.bias;
  if (how_.factors != nullptr) {
    std::copy_n(how_.factors->scale.begin() + box.channel, channels, piece->scale);
    std::copy_n(how_.factors->bias.begin() + box.channel, channels, piece->bias);
  }
  return true;
}

}  // namespace sluice
