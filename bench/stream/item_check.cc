// Whole items, or samples of them.
#include "stream/item_check.h"

#include <algorithm>
#include <cstring>

#include "storage/element_type.h"
#include "workload/element.h"
#include "workload/local_part.h"

namespace sluice::bench {
namespace {

// No fill has larger numbers.
constexpr uint32_t kFillNumbers = 65536;

constexpr int64_t kSampleBytes = 4096;
constexpr int64_t kSampleStep = 16;  // one of this many samples is taken

// value * scale + bias as the library documents it: two roundings to f32, then one to `dst`. All
// numbers of the first channel, then all of the next one.
std::vector<std::byte> TransformedNumbers(const ItemTransform& transform) {
  const auto element_bytes = static_cast<size_t>(DTypeBytes(transform.dst));
  std::vector<float> scales = transform.channel_scale;
  std::vector<float> biases = transform.channel_bias;
  if (scales.empty()) {
    scales = {transform.scale};
    biases = {transform.bias};
  }
  std::vector<std::byte> numbers(scales.size() * kFillNumbers * element_bytes);
  std::byte* to = numbers.data();
  for (size_t channel = 0; channel < scales.size(); ++channel) {
    for (uint32_t number = 0; number < kFillNumbers; ++number, to += element_bytes) {
      // Not fused: volatile keeps the product from being more than a float.
      const volatile float product = static_cast<float>(number) * scales[channel];
      const float sum = product + biases[channel];
      WithCodec(transform.dst, [&](auto codec) {
        const typename decltype(codec)::Unit unit = codec.Store(sum);
        std::memcpy(to, &unit, element_bytes);
      });
    }
  }
  return numbers;
}

// Which of an item's elements one became, and of which channel it is.
struct Place {
  int64_t element;
  int64_t channel;
};

template <typename Unit, typename PlaceOf>
int64_t CountWrong(const ShardFill& fill, int64_t item, const std::byte* data, int64_t begin,
                   int64_t end, const std::byte* expected, const PlaceOf& place_of) {
  int64_t wrong = 0;
  for (int64_t e = begin; e < end; ++e) {
    const Place place = place_of(e);
    const size_t number =
        static_cast<size_t>(place.channel) * kFillNumbers + fill.Value(item, place.element);
    Unit found;
    Unit wanted;
    std::memcpy(&found, data + static_cast<size_t>(e) * sizeof(Unit), sizeof(Unit));
    std::memcpy(&wanted, expected + number * sizeof(Unit), sizeof(Unit));
    wrong += found != wanted ? 1 : 0;
  }
  return wrong;
}

}  // namespace

ItemCheck::ItemCheck(const Contents* contents, Check check,
                     const absl::optional<ItemTransform>& transform)
    : contents_(contents), check_(check), transform_(transform) {
  if (transform && check != Check::kNone) transformed_ = TransformedNumbers(*transform);
}

// As its format says it, or the transform.
std::vector<int64_t> ItemCheck::ShapeOf(int64_t item) const {
  if (transform_ && !transform_->shape.empty()) return transform_->shape;
  return contents_->ShapeOf(item);
}

// What the shape of an item's view must be.
std::vector<int64_t> ItemCheck::DeliveredShape(int64_t item) const {
  std::vector<int64_t> shape = ShapeOf(item);
  if (transform_->crop) shape = {transform_->crop->height, transform_->crop->width, shape[2]};
  if (transform_->planar) shape = {shape[2], shape[0], shape[1]};
  return shape;
}

// Of the delivered elements [begin, end).
int64_t ItemCheck::WrongIn(int64_t item, const std::byte* data, int64_t begin, int64_t end) const {
  const ShardFill& fill = contents_->FillOf(contents_->TypeOf(item));
  if (!transform_) {
    const int64_t element_bytes = ElementBytes(fill.type());
    return fill.CheckItem(
        item, begin * element_bytes,
        {data + begin * element_bytes, static_cast<size_t>((end - begin) * element_bytes)});
  }
  const auto count = [&](const auto& place_of) {
    return DTypeBytes(transform_->dst) == 2
               ? CountWrong<uint16_t>(fill, item, data, begin, end, transformed_.data(), place_of)
               : CountWrong<uint32_t>(fill, item, data, begin, end, transformed_.data(), place_of);
  };
  const bool by_channel = !transform_->channel_scale.empty();
  const std::vector<int64_t> shape = ShapeOf(item);
  const int64_t channels = shape.empty() ? 1 : shape.back();
  if (!transform_->planar && !transform_->crop) {
    return count([&](int64_t e) { return Place{e, by_channel ? e % channels : 0}; });
  }
  const ItemCrop crop = transform_->crop.value_or(ItemCrop{0, 0, shape[0], shape[1]});
  return count([&](int64_t e) {
    const int64_t pixels = crop.height * crop.width;
    const int64_t channel = transform_->planar ? e / pixels : e % channels;
    const int64_t pixel = transform_->planar ? e % pixels : e / channels;
    const int64_t y = crop.top + pixel / crop.width;
    const int64_t x = crop.left + pixel % crop.width;
    return Place{(y * shape[1] + x) * channels + channel, by_channel ? channel : 0};
  });
}

bool ItemCheck::IsOfRightShape(int64_t item, const TensorView& view) const {
  if (transform_ && view.dtype != transform_->dst) return false;
  const bool has_pixels =
      transform_ && (transform_->planar || transform_->crop || !transform_->shape.empty());
  if (has_pixels) {
    const std::vector<int64_t> wanted = DeliveredShape(item);
    return std::equal(wanted.begin(), wanted.end(), view.shape.begin(), view.shape.end());
  }
  const int64_t view_bytes = ElementsOf(view.shape) * DTypeBytes(view.dtype);
  const int64_t src_bytes = ElementBytes(contents_->TypeOf(item));
  const int64_t dst_bytes = transform_ ? DTypeBytes(transform_->dst) : src_bytes;
  return view_bytes == contents_->BytesOf(item) / src_bytes * dst_bytes;
}

int64_t ItemCheck::Wrong(int64_t item, const TensorView& view) const {
  if (check_ == Check::kNone) return 0;
  const int64_t src_bytes = ElementBytes(contents_->TypeOf(item));
  int64_t elements = contents_->BytesOf(item) / src_bytes;
  if (!IsOfRightShape(item, view)) return std::max<int64_t>(1, elements);
  if (transform_ && transform_->crop) {
    elements = transform_->crop->height * transform_->crop->width * ShapeOf(item)[2];
  }
  const std::byte* const data = static_cast<const std::byte*>(view.data) + view.byte_offset;
  const int64_t sample = kSampleBytes / src_bytes;
  if (check_ == Check::kAll || elements <= 2 * sample) return WrongIn(item, data, 0, elements);
  int64_t wrong = 0;
  int64_t begin = 0;
  for (; begin < elements - sample; begin += sample * kSampleStep) {
    wrong += WrongIn(item, data, begin, begin + sample);
  }
  // The last elements, but none twice.
  const int64_t last = std::max(elements - sample, begin - sample * (kSampleStep - 1));
  return wrong + WrongIn(item, data, last, elements);
}

}  // namespace sluice::bench
