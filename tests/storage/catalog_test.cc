// Catalogs: where items are, in how many runs, and what does not fit.
#include "storage/catalog.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "storage/format/catalog_formats.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void ExpectItem(const Catalog& catalog, int64_t item, int object, int64_t offset, int64_t bytes) {
  const Catalog::Item found = catalog.ItemAt(item);
  EXPECT_EQ(found.object, object) << item;
  EXPECT_EQ(found.offset, offset) << item;
  EXPECT_EQ(found.bytes, bytes) << item;
}

TEST(CatalogTest, UniformRecordsAreOneRun) {
  Catalog catalog;
  constexpr int64_t kRecords = 100'000'000;
  ASSERT_TRUE(AddRawObject("a", kRecords * 100, 100, nullptr, &catalog).ok());
  ASSERT_TRUE(AddRawObject("b", 500, 50, nullptr, &catalog).ok());
  EXPECT_EQ(catalog.items(), kRecords + 10);
  EXPECT_EQ(catalog.runs().size(), 2u);
  EXPECT_EQ(catalog.largest_item_bytes(), 100);
  ExpectItem(catalog, 0, 0, 0, 100);
  ExpectItem(catalog, kRecords - 1, 0, (kRecords - 1) * 100, 100);
  ExpectItem(catalog, kRecords, 1, 0, 50);
  ExpectItem(catalog, kRecords + 9, 1, 450, 50);
  EXPECT_EQ(catalog.ItemsOf(0), kRecords);
  EXPECT_EQ(catalog.ItemsOf(1), 10);
  EXPECT_EQ(catalog.CountOf(catalog.runs()[0]), kRecords);
  EXPECT_EQ(catalog.CountOf(catalog.runs()[1]), 10);
}

TEST(CatalogTest, ItemsAtEqualDistancesMerge) {
  Catalog catalog;
  ASSERT_TRUE(catalog.AddObject("a", 1000).ok());
  for (const int64_t offset : {10, 30, 50, 70, 80, 90}) {
    ASSERT_TRUE(catalog.AddItems(1, offset, 10, 10).ok());
  }
  EXPECT_EQ(catalog.runs().size(), 2u);  // 10 .. 70, and 80, 90
  ASSERT_TRUE(catalog.AddItems(3, 100, 10, 10).ok());
  EXPECT_EQ(catalog.runs().size(), 2u);
  ASSERT_TRUE(catalog.AddItems(1, 0, 10, 10).ok());  // backwards
  EXPECT_EQ(catalog.runs().size(), 3u);
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < catalog.items(); ++i) offsets.push_back(catalog.ItemAt(i).offset);
  EXPECT_THAT(offsets, ElementsAre(10, 30, 50, 70, 80, 90, 100, 110, 120, 0));
}

// Runs are an encoding: whatever is added comes back.
TEST(CatalogTest, RandomItemsComeBack) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int64_t n) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
    };
    Catalog catalog;
    std::vector<Catalog::Item> wanted;
    const ItemType types[] = {{ElementType::kU8, {4}}, {ElementType::kF32, {}}};
    for (int object = 0; object < 4; ++object) {
      ASSERT_TRUE(catalog.AddObject(std::string(1, static_cast<char>('a' + object)), -1).ok());
      const int64_t adds = below(5);
      for (int64_t k = 0; k < adds; ++k) {
        const int64_t count = below(4);
        const int64_t offset = below(5) * 4;
        const int64_t bytes = below(4) == 0 ? 8 : 4;
        const int64_t stride = below(3) * 4;
        const int type = bytes == 4 ? static_cast<int>(below(2)) : -1;
        ASSERT_TRUE(
            catalog.AddItems(count, offset, bytes, stride, type >= 0 ? &types[type] : nullptr)
                .ok());
        for (int64_t i = 0; i < count; ++i) {
          wanted.push_back({object, offset + i * stride, bytes, type});
        }
      }
    }
    ASSERT_EQ(catalog.items(), static_cast<int64_t>(wanted.size())) << seed;
    int64_t counted = 0;
    for (const Catalog::Stretch& run : catalog.runs()) counted += catalog.CountOf(run);
    EXPECT_EQ(counted, catalog.items());
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Catalog::Item found = catalog.ItemAt(static_cast<int64_t>(i));
      ASSERT_EQ(found.object, wanted[i].object) << seed << " " << i;
      ASSERT_EQ(found.offset, wanted[i].offset) << seed << " " << i;
      ASSERT_EQ(found.bytes, wanted[i].bytes) << seed << " " << i;
      ASSERT_EQ(found.type >= 0, wanted[i].type >= 0) << seed << " " << i;
      if (found.type < 0) continue;
      EXPECT_EQ(catalog.types()[static_cast<size_t>(found.type)], types[wanted[i].type]);
    }
  }
}

TEST(CatalogTest, RefusesItemsOutsideTheirObject) {
  Catalog catalog;
  ASSERT_TRUE(catalog.AddObject("a", 100).ok());
  const auto why_not = [&](int64_t count, int64_t offset, int64_t bytes, int64_t stride) {
    return std::string(catalog.AddItems(count, offset, bytes, stride).message());
  };
  EXPECT_THAT(why_not(1, 91, 10, 10), HasSubstr("pass its end"));
  EXPECT_THAT(why_not(10, 1, 10, 10), HasSubstr("pass its end"));
  EXPECT_THAT(why_not(INT64_C(1) << 40, 0, 1, INT64_C(1) << 40), HasSubstr("pass its end"));
  EXPECT_THAT(why_not(1, INT64_MAX, 1, 1), HasSubstr("pass its end"));
  EXPECT_THAT(why_not(1, -1, 1, 1), HasSubstr("negative"));
  EXPECT_THAT(why_not(-1, 0, 1, 1), HasSubstr("negative"));
  EXPECT_THAT(why_not(1, 0, -1, 1), HasSubstr("negative"));
  EXPECT_THAT(why_not(2, 0, 1, -1), HasSubstr("negative"));
  EXPECT_THAT(why_not(INT64_MAX, 0, 0, 0), HasSubstr("2^48 items"));
  EXPECT_EQ(catalog.items(), 0);
  EXPECT_EQ(why_not(10, 0, 10, 10), "");
  ASSERT_TRUE(catalog.AddObject("unknown", -1).ok());
  EXPECT_THAT(why_not(1, INT64_C(1) << 62, 1, 1), HasSubstr("less than 2^62"));
  EXPECT_EQ(why_not(1, (INT64_C(1) << 62) - 1, 1, 1), "");
}

TEST(CatalogTest, RefusesObjectsTwiceAndElsewhere) {
  Catalog catalog;
  ASSERT_TRUE(catalog.AddObject("a", 1).ok());
  EXPECT_THAT(std::string(catalog.AddObject("a", 1).message()), HasSubstr("\"a\" is there twice"));
  EXPECT_THAT(std::string(catalog.AddObject("../a", 1).message()), HasSubstr("leads elsewhere"));
  EXPECT_FALSE(catalog.AddObject("b", -2).ok());
  EXPECT_FALSE(catalog.AddObject("b", INT64_MAX).ok());
}

TEST(CatalogTest, OneTypeFitsAllItemsOrNone) {
  Catalog catalog;
  ASSERT_TRUE(AddRawObject("a", 16, 8, nullptr, &catalog).ok());
  EXPECT_EQ(catalog.UniformType(), nullptr);
  EXPECT_THAT(std::string(catalog.SetItemType({ElementType::kF32, {3}}).message()),
              HasSubstr("an item of 8 bytes is not f32 [3]"));
  EXPECT_FALSE(catalog.SetItemType({ElementType::kF32, {-1, -2}}).ok());
  EXPECT_EQ(catalog.UniformType(), nullptr);
  ASSERT_TRUE(catalog.SetItemType({ElementType::kF32, {2}}).ok());
  ASSERT_NE(catalog.UniformType(), nullptr);
  EXPECT_THAT(catalog.UniformType()->shape, ElementsAre(2));
  const ItemType other = {ElementType::kU8, {8}};
  ASSERT_TRUE(AddRawObject("b", 8, 8, &other, &catalog).ok());
  EXPECT_EQ(catalog.UniformType(), nullptr);
}

TEST(CatalogTest, RawObjectsHoldWholeRecords) {
  Catalog catalog;
  EXPECT_THAT(std::string(AddRawObject("a", 25, 10, nullptr, &catalog).message()),
              HasSubstr("no multiple of its records of 10: 5 are left over"));
  EXPECT_FALSE(AddRawObject("a", 10, 0, nullptr, &catalog).ok());
  EXPECT_FALSE(AddRawObject("a", -1, 1, nullptr, &catalog).ok());
  EXPECT_TRUE(AddRawObject("a", 0, 10, nullptr, &catalog).ok());
  EXPECT_EQ(catalog.items(), 0);
}

TEST(CatalogTest, NpyItemsAreAlongTheFirstDimension) {
  Catalog catalog;
  NpyHeader header = {ElementType::kI16, {5, 2, 3}, 128, 128 + 60};
  ASSERT_TRUE(AddNpyObject("a", header, &catalog).ok());
  EXPECT_EQ(catalog.items(), 5);
  ExpectItem(catalog, 4, 0, 128 + 48, 12);
  ASSERT_NE(catalog.UniformType(), nullptr);
  EXPECT_EQ(catalog.UniformType()->element, ElementType::kI16);
  EXPECT_THAT(catalog.UniformType()->shape, ElementsAre(2, 3));
  header.shape = {};
  EXPECT_THAT(std::string(AddNpyObject("b", header, &catalog).message()),
              HasSubstr("no dimensions"));
  header.shape = {3, 0};
  EXPECT_THAT(std::string(AddNpyObject("b", header, &catalog).message()), HasSubstr("no bytes"));
}

TEST(CatalogTest, SafetensorsItemsAreTensors) {
  SafetensorsHeader header;
  header.data_begin = 100;
  header.object_bytes = 114;
  header.tensors = {{"a", ElementType::kF32, {2}, 100, 108},
                    {"e", ElementType::kF32, {0}, 108, 108},
                    {"b", ElementType::kU8, {6}, 108, 114}};
  Catalog catalog;
  ASSERT_TRUE(AddSafetensorsObject("m", header, &catalog).ok());
  EXPECT_EQ(catalog.items(), 3);
  ExpectItem(catalog, 0, 0, 100, 8);
  ExpectItem(catalog, 1, 0, 108, 0);
  ExpectItem(catalog, 2, 0, 108, 6);
  EXPECT_EQ(catalog.UniformType(), nullptr);
  EXPECT_THAT(catalog.types()[static_cast<size_t>(catalog.ItemAt(0).type)].shape, ElementsAre(2));
}

TEST(CatalogTest, FormatsHaveNames) {
  for (const auto format : {ShardFormat::kRaw, ShardFormat::kNpy, ShardFormat::kSafetensors}) {
    EXPECT_EQ(*ParseShardFormat(ShardFormatName(format)), format);
  }
  EXPECT_THAT(std::string(ParseShardFormat("zip").status().message()), HasSubstr("\"zip\""));
}

TEST(CatalogDeathTest, ThereIsNoItemPastTheEnd) {
  Catalog catalog;
  ASSERT_TRUE(AddRawObject("a", 10, 10, nullptr, &catalog).ok());
  EXPECT_DEATH(catalog.ItemAt(1), "no such item");
  EXPECT_DEATH(catalog.ItemAt(-1), "no such item");
}

}  // namespace
}  // namespace sluice
