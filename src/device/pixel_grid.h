// Items as images: which of an item's elements are kept, and where each goes.
#ifndef SLUICE_SRC_DEVICE_PIXEL_GRID_H_
#define SLUICE_SRC_DEVICE_PIXEL_GRID_H_

#include <array>
#include <cstdint>

namespace sluice {

inline constexpr int64_t kMaxChannels = 64;  // that have factors of their own

struct ChannelFactors {
  std::array<float, kMaxChannels> scale;
  std::array<float, kMaxChannels> bias;
};

// An item of rows of pixels, whose channels lie side by side. Kept are `rows` rows from `top` on,
// and of each of them `columns` pixels from `left` on, one behind the other.
struct PixelGrid {
  int64_t channels = 0;
  int64_t width = 0;  // pixels of a whole row
  int64_t top = 0;
  int64_t left = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  bool planar = false;  // each channel becomes a plane of `rows` * `columns` elements

  int64_t kept() const { return rows * columns * channels; }
  // Kept elements among the item's first `elements`.
  int64_t KeptBefore(int64_t elements) const;
  // Locates the element of a kept row, column and channel: elements from the item's beginning.
  int64_t SourceOf(int64_t row, int64_t column, int64_t channel) const {
    return ((top + row) * width + left + column) * channels + channel;
  }
  int64_t DestinationOf(int64_t row, int64_t column, int64_t channel) const {
    const int64_t pixel = row * columns + column;
    return planar ? channel * rows * columns + pixel : pixel * channels + channel;
  }
};

// Kept pixels of which the same channels are there. All pixels of a row where there are several
// rows, and all channels where there are several pixels.
struct PixelBox {
  int64_t row = 0;
  int64_t column = 0;
  int64_t channel = 0;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t channels = 1;
};

// The boxes that kept elements [begin, end) consist of, in their order. They are five, if none has
// more than `elements_max` elements. One pixel always fits.
class PixelBoxes {
 public:
  PixelBoxes() = default;
  PixelBoxes(const PixelGrid& grid, int64_t begin, int64_t end, int64_t elements_max = INT64_MAX)
      : grid_(grid), position_(begin), end_(end), elements_max_(elements_max) {}

  // False if there is none any more.
  bool Next(PixelBox* box);

 private:
  PixelGrid grid_;
  int64_t position_ = 0;
  int64_t end_ = 0;
  int64_t elements_max_ = INT64_MAX;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_PIXEL_GRID_H_
