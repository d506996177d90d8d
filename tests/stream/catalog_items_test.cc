// The items of a catalog, and of a generator, as a stream sees them.
#include "session/stream/catalog_items.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using testing::ElementsAre;

struct Items {
  int64_t count = 1;
  int64_t offset = 0;
  int64_t bytes = 24;
  int64_t stride = 24;
  const ItemType* type = nullptr;
};

// One object "a" of 1000 bytes, with these items.
Catalog CatalogOf(const std::vector<Items>& all) {
  Catalog catalog;
  EXPECT_TRUE(catalog.AddObject("a", 1000).ok());
  for (const Items& items : all) {
    EXPECT_TRUE(
        catalog.AddItems(items.count, items.offset, items.bytes, items.stride, items.type).ok());
  }
  return catalog;
}

TEST(CatalogItemsTest, TypedItemsKeepTheirShape) {
  const ItemType matrix = {ElementType::kF32, {2, 3}};
  const ItemType scalar = {ElementType::kF64, {}};
  const CatalogItems items(
      CatalogOf({{.count = 2, .type = &matrix}, {.offset = 48, .bytes = 8, .type = &scalar}}),
      absl::nullopt);
  EXPECT_EQ(items.items(), 3);
  EXPECT_EQ(items.At(1).object, 0);
  EXPECT_EQ(items.At(1).offset, 24);
  EXPECT_EQ(items.At(1).bytes, 24);
  EXPECT_EQ(items.DTypeOf(1), DType::kF32);
  EXPECT_THAT(items.ShapeOf(1), ElementsAre(2, 3));
  EXPECT_EQ(items.DTypeOf(2), DType::kF64);
  EXPECT_THAT(items.ShapeOf(2), ElementsAre(1));
  EXPECT_EQ(items.item_bytes_max(), 24);
  EXPECT_THAT(items.object_names(), ElementsAre("a"));
}

TEST(CatalogItemsTest, ItemsOfNoTypeAreBytesOrWhatTheTransformTakes) {
  const CatalogItems bytes(CatalogOf({Items()}), absl::nullopt);
  EXPECT_EQ(bytes.DTypeOf(0), DType::kU8);
  EXPECT_THAT(bytes.ShapeOf(0), ElementsAre(24));
  const CatalogItems floats(CatalogOf({Items()}), DType::kF32);
  EXPECT_EQ(floats.DTypeOf(0), DType::kF32);
  EXPECT_THAT(floats.ShapeOf(0), ElementsAre(6));
  // Of another type than the transform takes: its bytes are taken as that.
  const ItemType other = {ElementType::kF64, {3}};
  const CatalogItems taken(CatalogOf({{.type = &other}}), DType::kF32);
  EXPECT_EQ(taken.DTypeOf(0), DType::kF32);
  EXPECT_THAT(taken.ShapeOf(0), ElementsAre(6));
  const ItemType same = {ElementType::kF32, {2, 3}};
  EXPECT_THAT(CatalogItems(CatalogOf({{.type = &same}}), DType::kF32).ShapeOf(0),
              ElementsAre(2, 3));
}

TEST(CatalogItemsTest, UniformItemsAreOfOneSizeAndType) {
  const ItemType floats = {ElementType::kF32, {6}};
  const ItemType ints = {ElementType::kI32, {6}};
  const auto uniform = [](const std::vector<Items>& all) {
    return CatalogItems(CatalogOf(all), absl::nullopt).uniform();
  };
  EXPECT_TRUE(uniform({{.count = 5}, {.offset = 500}}));
  EXPECT_FALSE(uniform({{.count = 5}, {.offset = 500, .bytes = 23}}));
  EXPECT_TRUE(uniform({{.type = &floats}, {.offset = 500, .type = &floats}}));
  EXPECT_FALSE(uniform({{.type = &floats}, {.offset = 500, .type = &ints}}));
}

TEST(CatalogItemsTest, AlignedItemsAllBeginAtMultiples) {
  const auto aligned = [](const Items& items) {
    return CatalogItems(CatalogOf({items}), absl::nullopt).aligned_to(16);
  };
  EXPECT_TRUE(aligned({.count = 3, .offset = 32, .stride = 48}));
  EXPECT_FALSE(aligned({.count = 3, .offset = 32, .stride = 40}));
  EXPECT_FALSE(aligned({.count = 3, .offset = 40, .stride = 48}));
  EXPECT_TRUE(aligned({.count = 1, .offset = 32, .stride = 40}));
}

TEST(CatalogItemsTest, TheFingerprintIsOfWhereItemsLie) {
  const auto print = [](const std::vector<Items>& all) {
    return CatalogItems(CatalogOf(all), absl::nullopt).fingerprint();
  };
  const uint64_t one = print({{.count = 3}});
  EXPECT_EQ(print({{.count = 3}}), one);
  EXPECT_NE(one, 0u);
  EXPECT_NE(print({{.count = 3, .offset = 1}}), one);
  EXPECT_NE(print({{.count = 3, .stride = 25}}), one);
  EXPECT_NE(print({{.count = 3, .bytes = 23}}), one);
  Catalog longer;
  ASSERT_TRUE(longer.AddObject("a", 1001).ok());
  ASSERT_TRUE(longer.AddItems(3, 0, 24, 24).ok());
  EXPECT_NE(CatalogItems(std::move(longer), absl::nullopt).fingerprint(), one);
}

TEST(GeneratedItemsTest, LieOneBehindTheOther) {
  const GeneratedItems items(10, 24, absl::nullopt);
  EXPECT_EQ(items.items(), 10);
  EXPECT_EQ(items.At(3).offset, 72);
  EXPECT_EQ(items.At(3).bytes, 24);
  EXPECT_EQ(items.DTypeOf(3), DType::kU8);
  EXPECT_THAT(items.ShapeOf(3), ElementsAre(24));
  const GeneratedItems floats(10, 24, DType::kF32);
  EXPECT_EQ(floats.DTypeOf(3), DType::kF32);
  EXPECT_THAT(floats.ShapeOf(3), ElementsAre(6));
  EXPECT_EQ(floats.fingerprint(), items.fingerprint());
  EXPECT_NE(GeneratedItems(10, 25, absl::nullopt).fingerprint(), items.fingerprint());
  EXPECT_TRUE(items.made());
  EXPECT_FALSE(items.sized());
}

TEST(GeneratedItemsTest, OfVaryingSizeHaveRoomForTheirLength) {
  const GeneratedItems items(10, 21, absl::nullopt, true);
  EXPECT_TRUE(items.sized());
  EXPECT_FALSE(items.uniform());
  EXPECT_EQ(items.item_bytes_max(), 32);
  EXPECT_EQ(items.payload_bytes_max(), 21);
  EXPECT_EQ(items.At(3).offset, 96);
  EXPECT_EQ(items.At(3).bytes, 32);
  EXPECT_NE(GeneratedItems(10, 21, absl::nullopt).fingerprint(), items.fingerprint());
}

}  // namespace
}  // namespace sluice
