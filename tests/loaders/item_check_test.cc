// What is wrong with an item is counted, and so are items that come twice or not in their turn.
#include "stream/item_check.h"

#include <memory>
#include <vector>

#include "device/normalization.h"
#include "gtest/gtest.h"
#include "stream/delivery_check.h"

namespace sluice::bench {
namespace {

constexpr int64_t kElements = 50'000;

class ItemCheckTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Contents of a generator, which are of the transform's source type.
  std::unique_ptr<Contents> Make(const std::string& transform) {
    options_.source = "generator";
    options_.items = 3;
    options_.transform_text = transform;
    options_.item_bytes_text = "100000";
    EXPECT_TRUE(ParseStreamTexts(&options_).ok());
    if (options_.transform) {
      options_.item_bytes = kElements * DTypeBytes(options_.transform->src);
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
  const ItemCheck full(contents.get(), Verify::kFull, absl::nullopt);
  const ItemCheck sample(contents.get(), Verify::kSample, absl::nullopt);
  const ItemCheck none(contents.get(), Verify::kNone, absl::nullopt);
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
  const ItemTransform& transform = *options_.transform;
  const ElementType type = ElementTypeOf(transform.src);
  std::vector<std::byte> item(static_cast<size_t>(options_.item_bytes));
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
  const ItemCheck full(contents.get(), Verify::kFull, options_.transform);
  const ItemCheck sample(contents.get(), Verify::kSample, options_.transform);
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
