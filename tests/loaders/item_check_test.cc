// What is wrong with an item is counted, and so are items that come twice or not in their turn.
#include "stream/item_check.h"

#include <memory>
#include <vector>

#include "device/normalization.h"
#include "gtest/gtest.h"
#include "stream/consumer.h"

namespace sluice::bench {
namespace {

constexpr int64_t kElements = 50'000;

class ItemCheckTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Contents of a generator, which are of the transform's source type.
  std::unique_ptr<Contents> Make(const std::string& transform) {
    options_.source = "generator";
    options_.items = 3;
    options_.transform_flags.types = transform;
    options_.stream.source.item_bytes = 100000;
    EXPECT_TRUE(ParseStreamTexts(&options_).ok());
    if (options_.stream.buffers.transform) {
      options_.stream.source.item_bytes =
          kElements * DTypeBytes(options_.stream.buffers.transform->src);
    }
    auto contents = Contents::Make(options_, Catalog());
    EXPECT_TRUE(contents.ok()) << contents.status();
    return *std::move(contents);
  }

  StreamBenchOptions options_;
};

TEST_F(ItemCheckTest, PlainBytes) {
  const auto contents = Make("");
  std::vector<std::byte> item(100'000);
  contents->FillOf(ElementType::kU8).FillItem(2, 0, absl::MakeSpan(item));
  const TensorView view = DenseView(item.data(), {100'000}, DType::kU8);
  const ItemCheck full(contents.get(), Check::kAll, absl::nullopt);
  const ItemCheck sample(contents.get(), Check::kSample, absl::nullopt);
  const ItemCheck none(contents.get(), Check::kNone, absl::nullopt);
  EXPECT_EQ(full.Wrong(2, view), 0);
  EXPECT_EQ(sample.Wrong(2, view), 0);
  EXPECT_GT(full.Wrong(1, view), 90'000);
  EXPECT_GT(sample.Wrong(1, view), 4'096);
  EXPECT_EQ(none.Wrong(1, view), 0);
  for (const size_t at : {size_t{0}, size_t{65'536}, size_t{99'999}}) item[at] ^= std::byte{1};
  item[30'000] ^= std::byte{1};  // between two samples
  EXPECT_EQ(full.Wrong(2, view), 4);
  EXPECT_EQ(sample.Wrong(2, view), 3);
  EXPECT_EQ(full.Wrong(2, DenseView(item.data(), {99'999}, DType::kU8)), 100'000);
}

TEST_P(ItemCheckTest, AfterATransform) {
  const auto contents = Make(GetParam());
  const ItemTransform& transform = *options_.stream.buffers.transform;
  const ElementType type = *ElementTypeOf(transform.src);
  std::vector<std::byte> item(static_cast<size_t>(options_.stream.source.item_bytes));
  contents->FillOf(type).FillItem(1, 0, absl::MakeSpan(item));
  const auto dst_bytes = static_cast<size_t>(DTypeBytes(transform.dst));
  std::vector<std::byte> result(kElements * dst_bytes);
  Normalize({.src_dtype = transform.src,
             .dst_dtype = transform.dst,
             .scale = transform.scale,
             .bias = transform.bias,
             .src = item.data(),
             .dst = result.data(),
             .elements = kElements});
  const TensorView view = DenseView(result.data(), {kElements}, transform.dst);
  const ItemCheck full(contents.get(), Check::kAll, options_.stream.buffers.transform);
  const ItemCheck sample(contents.get(), Check::kSample, options_.stream.buffers.transform);
  EXPECT_EQ(full.Wrong(1, view), 0);
  EXPECT_EQ(sample.Wrong(1, view), 0);
  result[3 * dst_bytes] ^= std::byte{1};
  result[(kElements - 1) * dst_bytes] ^= std::byte{1};
  EXPECT_EQ(full.Wrong(1, view), 2);
  EXPECT_EQ(sample.Wrong(1, view), 2);
  EXPECT_EQ(full.Wrong(1, DenseView(result.data(), {kElements}, DType::kF64)), kElements);
}

INSTANTIATE_TEST_SUITE_P(All, ItemCheckTest,
                         testing::Values("u8:f32:0.0039:-0.5", "u8:f16:0.1:0", "u8:bf16:3:1",
                                         "i16:f32:0.37:7", "f16:bf16:-1.5:0.25", "bf16:f16:0.001:0",
                                         "f32:f32:1e-3:1e-6", "f32:f16:2:-100"));

// Items of 100 x 125 pixels of four channels, as plain loops make them.
TEST_F(ItemCheckTest, Images) {
  constexpr int64_t kHeight = 100;
  constexpr int64_t kWidth = 125;
  for (const bool planar : {true, false}) {
    for (const bool crops : {true, false}) {
      options_ = StreamBenchOptions();
      options_.transform_flags.planar = planar;
      options_.transform_flags.item_shape = "100,125,4";
      options_.transform_flags.channel_scale = "0.5,1,2,0.25";
      options_.transform_flags.channel_bias = "1,-2,3,0";
      if (crops) options_.transform_flags.crop = "7,11,80,90";
      const auto contents = Make("u8:f32");
      const ItemTransform& transform = *options_.stream.buffers.transform;
      const ItemCrop crop = crops ? *transform.crop : ItemCrop{0, 0, kHeight, kWidth};
      std::vector<std::byte> item(static_cast<size_t>(kElements));
      contents->FillOf(ElementType::kU8).FillItem(1, 0, absl::MakeSpan(item));
      std::vector<float> made;
      const auto add = [&](int64_t y, int64_t x, int64_t c) {
        const auto at = static_cast<size_t>(((crop.top + y) * kWidth + crop.left + x) * 4 + c);
        const auto channel = static_cast<size_t>(c);
        made.push_back(static_cast<float>(item[at]) * transform.channel_scale[channel] +
                       transform.channel_bias[channel]);
      };
      for (int64_t c = 0; c < (planar ? 4 : 1); ++c) {
        for (int64_t y = 0; y < crop.height; ++y) {
          for (int64_t x = 0; x < crop.width; ++x) {
            if (planar) add(y, x, c);
            for (int64_t side = 0; !planar && side < 4; ++side) add(y, x, side);
          }
        }
      }
      const std::vector<int64_t> shape = planar ? std::vector<int64_t>{4, crop.height, crop.width}
                                                : std::vector<int64_t>{crop.height, crop.width, 4};
      const TensorView view =
          DenseView(reinterpret_cast<std::byte*>(made.data()), shape, DType::kF32);
      const ItemCheck full(contents.get(), Check::kAll, options_.stream.buffers.transform);
      const ItemCheck sample(contents.get(), Check::kSample, options_.stream.buffers.transform);
      EXPECT_EQ(full.Wrong(1, view), 0);
      EXPECT_EQ(sample.Wrong(1, view), 0);
      EXPECT_GT(full.Wrong(2, view), crop.height * crop.width);
      made.front() += 1;
      made[made.size() / 2] += 1;
      made.back() += 1;
      EXPECT_EQ(full.Wrong(1, view), 3);
      const TensorView other = DenseView(reinterpret_cast<std::byte*>(made.data()),
                                         {static_cast<int64_t>(made.size())}, DType::kF32);
      EXPECT_EQ(full.Wrong(1, other), kElements);
    }
  }
}

TEST(DeliveryCheckTest, InOrder) {
  StreamPlanOptions options;
  options.items = 4;
  options.epochs = 2;
  options.places = {{1, 2, 4}};
  DeliveryCheck check(StreamPlan(options, 0), true);
  EXPECT_EQ(check.expected(), 4);
  EXPECT_TRUE(check.Take(1, 0));
  EXPECT_FALSE(check.Take(1, 0));
  EXPECT_TRUE(check.Take(1, 1));
  EXPECT_FALSE(check.Take(3, 0));
  EXPECT_FALSE(check.Take(3, 1));  // one too many
}

TEST(DeliveryCheckTest, AsTheyCome) {
  StreamPlanOptions options;
  options.items = 4;
  options.epochs = 2;
  options.shuffle = true;
  options.places = {{0, 1, 4}};
  DeliveryCheck check(StreamPlan(options, 0), false);
  for (int64_t item = 4; item-- > 0;) {
    EXPECT_TRUE(check.Take(item, 1));
    EXPECT_TRUE(check.Take(item, 0));
    EXPECT_FALSE(check.Take(item, 0));
  }
  EXPECT_FALSE(check.Take(4, 0));
  EXPECT_FALSE(check.Take(-1, 1));
  EXPECT_FALSE(check.Take(0, 2));
}

}  // namespace
}  // namespace sluice::bench
