// The kinds of normalizations, and the rows that each one is made of.
#include "device/normalization.h"

#include <cstddef>
#include <cstdint>
#include <optional>

#include "device/float_mode.h"
#include "device/normalize_rows.h"
#include "device/pixel_grid.h"
#include "sluice/tensor.h"
#include "tensor/check.h"

namespace sluice {
namespace {

// The part of an item of pixels that one normalization has.
class PixelNormalizer {
 public:
  PixelNormalizer(const Normalization& how, const NormalizeLoops& loops)
      : how_(how), loops_(loops) {
    if (how.factors != nullptr && !how.pixels.planar) {
      repeated_.emplace(*how.factors, how.pixels.channels);
    }
  }

  void Run() const {
    const PixelGrid& grid = how_.pixels;
    PixelBoxes boxes(grid, grid.KeptBefore(how_.first),
                     grid.KeptBefore(how_.first + how_.elements));
    for (PixelBox box; boxes.Next(&box);) {
      // Whole rows that follow each other on both sides are one.
      if (grid.columns == grid.width) {
        OneRow(box.row, box.column, box.channel, box.rows * box.columns * box.channels);
        continue;
      }
      for (int64_t row = box.row; row < box.row + box.rows; ++row) {
        OneRow(row, box.column, box.channel, box.columns * box.channels);
      }
    }
  }

 private:
  // Whole pixels, or elements of one.
  void OneRow(int64_t row, int64_t column, int64_t channel, int64_t elements) const {
    const PixelGrid& grid = how_.pixels;
    const int64_t dst_bytes = DTypeBytes(how_.dst_dtype);
    const std::byte* const src =
        how_.src + (grid.SourceOf(row, column, channel) - how_.first) * DTypeBytes(how_.src_dtype);
    std::byte* const dst = how_.dst + grid.DestinationOf(row, column, channel) * dst_bytes;
    if (!grid.planar && repeated_)
      return loops_.interleaved(src, dst, elements, *repeated_, channel);
    if (!grid.planar) return loops_.row(src, dst, elements, how_.scale, how_.bias);
    const int64_t plane_bytes = grid.rows * grid.columns * dst_bytes;
    if (channel == 0 && elements % grid.channels == 0) {
      return loops_.planar({src, dst, elements / grid.channels, grid.channels, plane_bytes,
                            how_.factors, how_.scale, how_.bias});
    }
    for (int64_t i = 0; i < elements; ++i) {
      const auto c = static_cast<size_t>(channel + i);
      loops_.row(src + i * DTypeBytes(how_.src_dtype), dst + i * plane_bytes, 1,
                 how_.factors == nullptr ? how_.scale : how_.factors->scale[c],
                 how_.factors == nullptr ? how_.bias : how_.factors->bias[c]);
    }
  }

  const Normalization& how_;
  const NormalizeLoops& loops_;
  std::optional<RepeatedFactors> repeated_;
};

}  // namespace

bool NormalizationExists(DType from, DType to) { return FindNormalize(from, to) != nullptr; }

void Normalize(const Normalization& normalization) {
  SLUICE_CHECK(normalization.elements >= 0, "normalization: fewer than no elements");
  const NormalizeLoops* const loops =
      FindNormalize(normalization.src_dtype, normalization.dst_dtype);
  SLUICE_CHECK(loops != nullptr, "normalization: none between these types");
  const int64_t channels = normalization.pixels.channels;
  SLUICE_CHECK(normalization.factors == nullptr || (channels > 0 && channels <= kMaxChannels),
               "normalization: factors of no channels, or of too many");
  const PromisedFloatMode mode;
  if (channels > 0) return PixelNormalizer(normalization, *loops).Run();
  loops->row(normalization.src, normalization.dst, normalization.elements, normalization.scale,
             normalization.bias);
}

}  // namespace sluice
