// Checks shapes, and describes normalizations.
#include "session/stream/item_normalizer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sluice/tensor.h"
#include "tensor/checked.h"

namespace sluice {
namespace {

constexpr int64_t kElementsMax = int64_t{1} << 57;  // in bytes and after a transform, too
constexpr size_t kPixelDims = 3;                    // height, width, channels

absl::Status Refuse(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("buffers.transform: ", text));
}

std::string TextOf(absl::Span<const int64_t> shape) {
  return absl::StrCat("{", absl::StrJoin(shape, ", "), "}");
}

bool AllFinite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

absl::Status CheckFactors(const ItemTransform& transform) {
  const size_t scales = transform.channel_scale.size();
  const size_t biases = transform.channel_bias.size();
  if (!std::isfinite(transform.scale) || !std::isfinite(transform.bias) ||
      !AllFinite(transform.channel_scale) || !AllFinite(transform.channel_bias)) {
    return Refuse("a scale or a bias is not a finite number");
  }
  if (scales != biases) {
    return Refuse(absl::StrCat("channel_scale is of ", scales, " channels, and channel_bias of ",
                               biases, ": both are empty, or both of all channels"));
  }
  if (scales > kMaxChannels) {
    return Refuse(
        absl::StrCat("channel_scale is of ", scales, " channels; the most is ", kMaxChannels));
  }
  return absl::OkStatus();
}

absl::Status CheckCrop(const ItemCrop& crop) {
  if (crop.top >= 0 && crop.left >= 0 && crop.height >= 1 && crop.width >= 1) {
    return absl::OkStatus();
  }
  return Refuse(absl::StrCat("crop of ", crop.height, " rows from ", crop.top, " on and of ",
                             crop.width, " columns from ", crop.left,
                             " on: at least 1, from at least 0 on"));
}

}  // namespace

bool HasPixels(const ItemTransform& transform) {
  return !transform.channel_scale.empty() || transform.planar || transform.crop.has_value();
}

absl::Status CheckTransform(const ItemTransform& transform) {
  if (!NormalizationExists(transform.src, transform.dst)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no transform leads from ", DTypeName(transform.src), " to ", DTypeName(transform.dst)));
  }
  if (absl::Status status = CheckFactors(transform); !status.ok()) return status;
  if (transform.crop) {
    if (absl::Status status = CheckCrop(*transform.crop); !status.ok()) return status;
  }
  const std::vector<int64_t>& shape = transform.shape;
  if (shape.empty()) return absl::OkStatus();
  if (shape.size() != kPixelDims || *std::min_element(shape.begin(), shape.end()) < 1 ||
      !CheckedProduct(shape, kElementsMax)) {
    return Refuse(absl::StrCat("shape ", TextOf(shape), " is not {height, width, channels}"));
  }
  return ItemNormalizer(transform).CheckShape(shape);
}

ItemNormalizer::ItemNormalizer(const ItemTransform& transform, const DeviceTraits& memory)
    : transform_(transform), memory_(memory) {
  std::copy(transform.channel_scale.begin(), transform.channel_scale.end(), factors_.scale.begin());
  std::copy(transform.channel_bias.begin(), transform.channel_bias.end(), factors_.bias.begin());
}

absl::Status ItemNormalizer::CheckShape(absl::Span<const int64_t> shape) const {
  if (!transform_.shape.empty() && shape != absl::MakeConstSpan(transform_.shape)) {
    return Refuse(absl::StrCat("it is of items of shape ", TextOf(transform_.shape),
                               ", but there are some of ", TextOf(shape)));
  }
  const size_t channels = transform_.channel_scale.size();
  if (channels > 0 && (shape.empty() || shape.back() != static_cast<int64_t>(channels))) {
    return Refuse(absl::StrCat("channel_scale is of ", channels,
                               " channels, but there are items of shape ", TextOf(shape)));
  }
  if (!transform_.planar && !transform_.crop) return absl::OkStatus();
  if (shape.size() != kPixelDims) {
    return Refuse(absl::StrCat(transform_.planar ? "planar" : "crop",
                               " is of items {height, width, channels}, but there are some of "
                               "shape ",
                               TextOf(shape), "; shape says it of items that do not"));
  }
  if (!transform_.crop) return absl::OkStatus();
  const ItemCrop& crop = *transform_.crop;
  const bool fits = crop.height <= shape[0] && crop.top <= shape[0] - crop.height &&
                    crop.width <= shape[1] && crop.left <= shape[1] - crop.width;
  if (fits) return absl::OkStatus();
  return Refuse(absl::StrCat("crop of ", crop.height, " rows from ", crop.top, " on and of ",
                             crop.width, " columns from ", crop.left,
                             " on reaches out of items of shape ", TextOf(shape)));
}

std::vector<int64_t> ItemNormalizer::ShapeOf(absl::Span<const int64_t> shape) const {
  std::vector<int64_t> made(shape.begin(), shape.end());
  if (transform_.crop) {
    made[0] = transform_.crop->height;
    made[1] = transform_.crop->width;
  }
  if (transform_.planar) std::rotate(made.begin(), made.begin() + 2, made.end());
  return made;
}

PixelGrid ItemNormalizer::GridOf(absl::Span<const int64_t> shape) const {
  PixelGrid grid;
  if (!HasPixels(transform_)) return grid;
  grid.channels = shape.back();
  grid.planar = transform_.planar;
  if (transform_.crop) {
    grid.width = shape[1];
    grid.top = transform_.crop->top;
    grid.left = transform_.crop->left;
    grid.rows = transform_.crop->height;
    grid.columns = transform_.crop->width;
    return grid;
  }
  // Only channels matter: all pixels are one row.
  grid.rows = 1;
  grid.columns = 1;
  for (const int64_t size : shape.first(shape.size() - 1)) grid.columns *= size;
  grid.width = grid.columns;
  return grid;
}

Normalization ItemNormalizer::PieceOf(const PixelGrid& grid, int64_t offset, int64_t bytes,
                                      const std::byte* src, std::byte* item) const {
  const int64_t src_bytes = DTypeBytes(transform_.src);
  Normalization piece;
  piece.src_dtype = transform_.src;
  piece.dst_dtype = transform_.dst;
  piece.scale = transform_.scale;
  piece.bias = transform_.bias;
  piece.src = src;
  piece.dst = item;
  piece.elements = bytes / src_bytes;
  piece.src_kind = memory_.staging;
  piece.dst_kind = memory_.buffers;
  if (grid.channels == 0) {
    piece.dst += offset / src_bytes * DTypeBytes(transform_.dst);
    return piece;
  }
  piece.pixels = grid;
  piece.first = offset / src_bytes;
  if (!transform_.channel_scale.empty()) piece.factors = &factors_;
  return piece;
}

absl::Status CheckTransformOf(const absl::optional<ItemTransform>& transform,
                              const StreamItems& items) {
  if (!transform || (!HasPixels(*transform) && transform->shape.empty())) return absl::OkStatus();
  const ItemNormalizer normalizer(*transform);
  return items.EachShape(
      [&](absl::Span<const int64_t> shape) { return normalizer.CheckShape(shape); });
}

DeliveredSizes DeliveredSizesOf(const absl::optional<ItemTransform>& transform,
                                const StreamItems& items) {
  if (!transform) return {items.payload_bytes_max(), items.uniform()};
  if (!transform->crop) {
    return {items.payload_bytes_max() / DTypeBytes(transform->src) * DTypeBytes(transform->dst),
            items.uniform()};
  }
  const ItemNormalizer normalizer(*transform);
  DeliveredSizes sizes;
  std::vector<int64_t> first;
  items
      .EachShape([&](absl::Span<const int64_t> shape) {
        const std::vector<int64_t> made = normalizer.ShapeOf(shape);
        if (first.empty()) first = made;
        sizes.uniform = sizes.uniform && made == first;
        int64_t bytes = DTypeBytes(transform->dst);
        for (const int64_t size : made) bytes *= size;
        sizes.bytes_max = std::max(sizes.bytes_max, bytes);
        return absl::OkStatus();
      })
      .IgnoreError();
  return sizes;
}

}  // namespace sluice
