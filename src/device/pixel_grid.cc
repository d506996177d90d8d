// Counts what is kept, and cuts it into boxes.
#include "device/pixel_grid.h"

#include <algorithm>
#include <cstdint>

namespace sluice {

int64_t PixelGrid::KeptBefore(int64_t elements) const {
  if (kept() == 0) return 0;
  const int64_t row_elements = width * channels;
  const int64_t row = elements / row_elements - top;
  if (row < 0) return 0;
  if (row >= rows) return kept();
  const int64_t along = elements % row_elements - left * channels;
  return (row * columns * channels) + std::clamp<int64_t>(along, 0, columns * channels);
}

bool PixelBoxes::Next(PixelBox* box) {
  const int64_t left = end_ - position_;
  if (left <= 0) return false;
  const int64_t channels = grid_.channels;
  const int64_t row_elements = grid_.columns * channels;
  *box = PixelBox();
  box->row = position_ / row_elements;
  box->column = position_ % row_elements / channels;
  box->channel = position_ % channels;
  const int64_t pixels_max = std::max<int64_t>(1, elements_max_ / channels);
  if (box->channel != 0 || left < channels) {
    box->channels = std::min(channels - box->channel, left);
  } else if (box->column != 0 || left < row_elements || pixels_max < grid_.columns) {
    box->channels = channels;
    box->columns = std::min({grid_.columns - box->column, left / channels, pixels_max});
  } else {
    box->channels = channels;
    box->columns = grid_.columns;
    box->rows = std::min(left / row_elements, pixels_max / grid_.columns);
  }
  position_ += box->rows * box->columns * box->channels;
  return true;
}

}  // namespace sluice
