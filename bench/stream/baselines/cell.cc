// Copies and views.
#include "stream/baselines/cell.h"

#include <cstring>

#include "device/normalization.h"

namespace sluice::bench {

void CopyToCell(const absl::optional<ItemTransform>& transform, const std::byte* src,
                int64_t offset, int64_t bytes, std::byte* cell) {
  if (bytes == 0) return;
  if (!transform) {
    std::memcpy(cell + offset, src, static_cast<size_t>(bytes));
    return;
  }
  const int64_t src_bytes = DTypeBytes(transform->src);
  Normalize({.src_dtype = transform->src,
             .dst_dtype = transform->dst,
             .scale = transform->scale,
             .bias = transform->bias,
             .src = src,
             .dst = cell + offset / src_bytes * DTypeBytes(transform->dst),
             .elements = bytes / src_bytes});
}

TensorView ViewOfCell(const absl::optional<ItemTransform>& transform, const StreamItems& items,
                      int64_t item, std::byte* cell) {
  return DenseView(cell, items.ShapeOf(item), transform ? transform->dst : items.DTypeOf(item));
}

}  // namespace sluice::bench
