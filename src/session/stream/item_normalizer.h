// Transforms items: computes the shapes they have then, and how each piece gets there.
#ifndef SLUICE_SRC_SESSION_STREAM_ITEM_NORMALIZER_H_
#define SLUICE_SRC_SESSION_STREAM_ITEM_NORMALIZER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "device/normalization.h"
#include "device/pixel_grid.h"
#include "session/stream/stream_items.h"
#include "sluice/stream.h"

namespace sluice {

// InvalidArgument for a transform that no item could have.
absl::Status CheckTransform(const ItemTransform& transform);

// True if the elements of an item do not all have one scale and stay where they are.
bool HasPixels(const ItemTransform& transform);

// Thread: const calls, any.
class ItemNormalizer {
 public:
  // CheckTransform is OK with it. `memory`: which kinds pieces are in, and items are made in.
  explicit ItemNormalizer(const ItemTransform& transform, const DeviceTraits& memory = {});
  ItemNormalizer(const ItemNormalizer&) = delete;  // normalizations refer to it
  ItemNormalizer& operator=(const ItemNormalizer&) = delete;

  // InvalidArgument for items that cannot be transformed so.
  absl::Status CheckShape(absl::Span<const int64_t> shape) const;

  // ---- For a shape that CheckShape is OK with.

  // The shape of the transformed item.
  std::vector<int64_t> ShapeOf(absl::Span<const int64_t> shape) const;
  // Has no channels if elements stay where they are.
  PixelGrid GridOf(absl::Span<const int64_t> shape) const;

  // Normalizes `bytes` of an item, from `offset` on, which are at `src`. `item` is where the
  // transformed item begins. The result refers to this object.
  Normalization PieceOf(const PixelGrid& grid, int64_t offset, int64_t bytes, const std::byte* src,
                        std::byte* item) const;

 private:
  const ItemTransform transform_;
  const DeviceTraits memory_;
  ChannelFactors factors_ = {};
};

// InvalidArgument if one of the items cannot be transformed.
absl::Status CheckTransformOf(const absl::optional<ItemTransform>& transform,
                              const StreamItems& items);

// How large items are for their consumer.
struct DeliveredSizes {
  int64_t bytes_max = 0;
  bool uniform = true;  // all items are of one size
};
DeliveredSizes DeliveredSizesOf(const absl::optional<ItemTransform>& transform,
                                const StreamItems& items);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_ITEM_NORMALIZER_H_
