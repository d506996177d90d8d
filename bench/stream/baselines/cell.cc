// Copies and views.
#include "stream/baselines/cell.h"

#include <cstring>
#include <vector>

#include "device/normalization.h"
#include "session/stream/item_normalizer.h"

namespace sluice::bench {

void CopyToCell(const absl::optional<ItemTransform>& transform, const StreamItems& items,
                int64_t item, const std::byte* src, int64_t offset, int64_t bytes,
                std::byte* cell) {
  if (bytes == 0) return;
  if (!transform) {
    std::memcpy(cell + offset, src, static_cast<size_t>(bytes));
    return;
  }
  const ItemNormalizer normalizer(*transform);
  Normalize(normalizer.PieceOf(normalizer.GridOf(items.ShapeOf(item)), offset, bytes, src, cell));
}

TensorView ViewOfCell(const absl::optional<ItemTransform>& transform, const StreamItems& items,
                      int64_t item, std::byte* cell) {
  const std::vector<int64_t> shape = items.ShapeOf(item);
  if (!transform) return DenseView(cell, shape, items.DTypeOf(item));
  return DenseView(cell, ItemNormalizer(*transform).ShapeOf(shape), transform->dst);
}

}  // namespace sluice::bench
