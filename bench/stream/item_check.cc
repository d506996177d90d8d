// Whole items, or samples of them.
#include "stream/item_check.h"

#include <algorithm>
#include <cstring>

#include "storage/element_type.h"
#include "workload/element.h"

namespace sluice::bench {
namespace {

// No fill has larger numbers.
constexpr uint32_t kFillNumbers = 65536;

constexpr int64_t kSampleBytes = 4096;
constexpr int64_t kSampleStep = 16;  // one of this many samples is taken

// value * scale + bias as the library documents it: two roundings to f32, then one to `dst`.
std::vector<std::byte> TransformedNumbers(const ItemTransform& transform) {
  const auto element_bytes = static_cast<size_t>(DTypeBytes(transform.dst));
  std::vector<std::byte> numbers(kFillNumbers * element_bytes);
  for (uint32_t number = 0; number < kFillNumbers; ++number) {
    // Not fused: volatile keeps the product from being more than a float.
    const volatile float product = static_cast<float>(number) * transform.scale;
    const float sum = product + transform.bias;
    WithCodec(transform.dst, [&](auto codec) {
      const typename decltype(codec)::Unit unit = codec.Store(sum);
      std::memcpy(&numbers[number * element_bytes], &unit, element_bytes);
    });
  }
  return numbers;
}

template <typename Unit>
int64_t CountWrong(const ShardFill& fill, int64_t item, const std::byte* data, int64_t begin,
                   int64_t end, const std::byte* expected) {
  int64_t wrong = 0;
  for (int64_t e = begin; e < end; ++e) {
    Unit found;
    Unit wanted;
    std::memcpy(&found, data + static_cast<size_t>(e) * sizeof(Unit), sizeof(Unit));
    std::memcpy(&wanted, expected + fill.Value(item, e) * sizeof(Unit), sizeof(Unit));
    wrong += found != wanted ? 1 : 0;
  }
  return wrong;
}

}  // namespace

ItemCheck::ItemCheck(const Contents* contents, Verify verify,
                     const absl::optional<ItemTransform>& transform)
    : contents_(contents), verify_(verify), transform_(transform) {
  if (transform && verify != Verify::kNone) transformed_ = TransformedNumbers(*transform);
}

// Of the elements [begin, end).
int64_t ItemCheck::WrongIn(int64_t item, const std::byte* data, int64_t begin, int64_t end) const {
  const ShardFill& fill = contents_->FillOf(contents_->TypeOf(item));
  if (!transform_) {
    const int64_t element_bytes = ElementBytes(fill.type());
    return fill.CheckItem(
        item, begin * element_bytes,
        {data + begin * element_bytes, static_cast<size_t>((end - begin) * element_bytes)});
  }
  return DTypeBytes(transform_->dst) == 2
             ? CountWrong<uint16_t>(fill, item, data, begin, end, transformed_.data())
             : CountWrong<uint32_t>(fill, item, data, begin, end, transformed_.data());
}

int64_t ItemCheck::Wrong(int64_t item, const TensorView& view) const {
  if (verify_ == Verify::kNone) return 0;
  const int64_t item_bytes = contents_->BytesOf(item);
  const int64_t src_bytes = ElementBytes(contents_->TypeOf(item));
  const int64_t elements = item_bytes / src_bytes;
  const int64_t dst_bytes = transform_ ? DTypeBytes(transform_->dst) : src_bytes;
  int64_t view_bytes = DTypeBytes(view.dtype);
  for (const int64_t size : view.shape) view_bytes *= size;
  const bool right_type = !transform_ || view.dtype == transform_->dst;
  if (view_bytes != elements * dst_bytes || !right_type) return std::max<int64_t>(1, elements);
  const std::byte* const data = static_cast<const std::byte*>(view.data) + view.byte_offset;
  const int64_t sample = kSampleBytes / src_bytes;
  if (verify_ == Verify::kFull || elements <= 2 * sample) return WrongIn(item, data, 0, elements);
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
