// Generated data shards, read back through their index and their own headers.
#include "shards/make_shards.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/bytes_of.h"
#include "storage/file/atomic_file.h"
#include "storage/format/npy.h"
#include "storage/format/safetensors.h"
#include "storage/format/shard_index.h"
#include "workload/shard_fill.h"

namespace sluice::bench {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MakeShardsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string made = testing::TempDir() + "sluice_shards_XXXXXX";
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    plan_.directory = made + "/data/set";
    root_ = made;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string Content(const std::string& name) const {
    std::ifstream file(absl::StrCat(plan_.directory, "/", name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // The index, after checking every item against it and the fill.
  ShardIndex MakeAndCheck() const {
    const auto made = MakeShards(plan_);
    EXPECT_TRUE(made.ok()) << made.status();
    auto index = ParseShardIndex(Content("index.json"));
    EXPECT_TRUE(index.ok()) << index.status();
    EXPECT_EQ(index->format, plan_.format);
    const Catalog& catalog = index->catalog;
    EXPECT_EQ(catalog.items(), plan_.items);
    EXPECT_EQ(made->items, plan_.items);
    EXPECT_EQ(made->objects, static_cast<int64_t>(catalog.objects().size()));
    const ShardFill fill = *ShardFill::Make(plan_.type, plan_.seed);
    std::vector<std::string> contents;
    int64_t bytes = 0;
    for (const Catalog::Object& object : catalog.objects()) {
      contents.push_back(Content(object.name));
      EXPECT_EQ(static_cast<int64_t>(contents.back().size()), object.bytes);
      bytes += object.bytes;
    }
    EXPECT_EQ(made->bytes, bytes);
    for (int64_t i = 0; i < catalog.items(); ++i) {
      const Catalog::Item item = catalog.ItemAt(i);
      EXPECT_EQ(item.bytes, plan_.item_bytes);
      const auto data =
          BytesOf(contents[static_cast<size_t>(item.object)])
              .subspan(static_cast<size_t>(item.offset), static_cast<size_t>(item.bytes));
      EXPECT_EQ(fill.CheckItem(i, 0, data), 0) << i;
    }
    return *std::move(index);
  }

  std::string root_;
  ShardsPlan plan_ = {.format = ShardFormat::kRaw,
                      .type = ElementType::kU8,
                      .directory = {},
                      .items = 7,
                      .item_bytes = 100,
                      .items_per_object = 3,
                      .seed = 5};
};

TEST_F(MakeShardsTest, Raw) {
  const ShardIndex index = MakeAndCheck();
  EXPECT_EQ(index.catalog.objects().size(), 3u);
  EXPECT_EQ(index.catalog.objects()[2].name, "shard-000002.bin");
  EXPECT_EQ(index.catalog.objects()[2].bytes, 100);
  EXPECT_EQ(index.catalog.ItemAt(3).offset, 0);
}

TEST_F(MakeShardsTest, ItemsLargerThanTheBuffer) {
  plan_.type = ElementType::kF32;
  plan_.items = 3;
  plan_.item_bytes = 1500000;
  MakeAndCheck();
}

TEST_F(MakeShardsTest, NpyHeadersSayTheSame) {
  plan_.format = ShardFormat::kNpy;
  plan_.type = ElementType::kI16;
  const ShardIndex index = MakeAndCheck();
  EXPECT_EQ(index.catalog.ItemAt(3).offset, 4096);
  Catalog by_headers;
  for (const Catalog::Object& object : index.catalog.objects()) {
    const auto header = ParseNpyHeader(BytesOf(Content(object.name)), object.bytes).value();
    ASSERT_TRUE(AddNpyObject(object.name, header, &by_headers).ok());
  }
  EXPECT_EQ(*ShardIndexText(plan_.format, by_headers), Content("index.json"));
}

TEST_F(MakeShardsTest, SafetensorsHeadersSayTheSame) {
  plan_.format = ShardFormat::kSafetensors;
  plan_.type = ElementType::kBF16;
  const ShardIndex index = MakeAndCheck();
  EXPECT_EQ(index.catalog.ItemAt(0).offset, 4096);
  Catalog by_headers;
  for (const Catalog::Object& object : index.catalog.objects()) {
    const auto header = ParseSafetensorsHeader(BytesOf(Content(object.name)), object.bytes).value();
    EXPECT_THAT(header.tensors[0].shape, ElementsAre(50));
    ASSERT_TRUE(AddSafetensorsObject(object.name, header, &by_headers).ok());
  }
  EXPECT_EQ(*ShardIndexText(plan_.format, by_headers), Content("index.json"));
}

TEST_F(MakeShardsTest, RefusesADirectoryThatIsNotEmpty) {
  fs::create_directories(plan_.directory);
  ASSERT_TRUE(WriteFileAtomically(plan_.directory + "/mine", "x").ok());
  const auto made = MakeShards(plan_);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("--force"));
  EXPECT_FALSE(fs::exists(plan_.directory + "/index.json"));
  plan_.force = true;
  MakeAndCheck();
  plan_.items = 2;  // over the older ones
  MakeAndCheck();
  EXPECT_EQ(Content("mine"), "x");
}

TEST_F(MakeShardsTest, SaysWhyThereIsNoDirectory) {
  ASSERT_TRUE(WriteFileAtomically(root_ + "/data", "a file").ok());
  EXPECT_THAT(std::string(MakeShards(plan_).status().message()), HasSubstr("cannot make"));
}

TEST_F(MakeShardsTest, RefusesTypesWithoutAFill) {
  plan_.type = ElementType::kBool;
  EXPECT_THAT(std::string(MakeShards(plan_).status().message()), HasSubstr("no fill of bool"));
}

absl::StatusOr<ShardsPlan> Parse(const std::string& flags) {
  CLI::App app;
  ShardsOptions options;
  AddShardsFlags(&app, &options);
  try {
    app.parse(flags);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return ParseShards(options);
}

std::string WhyNot(const std::string& flags) {
  return std::string(Parse(flags).status().message());
}

TEST(ShardsOptionsTest, ReadsAllFlags) {
  const auto plan = Parse(
      "--make npy --dir d --items 10 --item-bytes 1K --items-per-object 4 --seed 9 --dtype "
      "bf16 "
      "--force");
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr(".npy object cannot hold bf16"));
  const auto other =
      Parse(
          "--make safetensors --dir d --items 10 --item-bytes 1K --items-per-object 4 --seed 9 "
          "--dtype bf16 --force")
          .value();
  EXPECT_EQ(other.format, ShardFormat::kSafetensors);
  EXPECT_EQ(other.type, ElementType::kBF16);
  EXPECT_EQ(other.directory, "d");
  EXPECT_EQ(other.items, 10);
  EXPECT_EQ(other.item_bytes, 1024);
  EXPECT_EQ(other.items_per_object, 4);
  EXPECT_EQ(other.objects(), 3);
  EXPECT_EQ(other.seed, 9u);
  EXPECT_TRUE(other.force);
}

TEST(ShardsOptionsTest, ObjectsAreOfAbout64MiBUnlessTold) {
  EXPECT_EQ(Parse("--make raw --dir d --items 10 --item-bytes 1M")->items_per_object, 64);
  EXPECT_EQ(Parse("--make raw --dir d --items 10 --item-bytes 1G")->items_per_object, 1);
}

TEST(ShardsOptionsTest, BadFlagsAreNamed) {
  EXPECT_THAT(WhyNot("--dir d --items 1 --item-bytes 1"), HasSubstr("--make"));
  EXPECT_THAT(WhyNot("--make raw --items 1 --item-bytes 1"), HasSubstr("--dir"));
  EXPECT_THAT(WhyNot("--make tar --dir d --items 1 --item-bytes 1"),
              HasSubstr("--make: there is no format \"tar\""));
  EXPECT_THAT(WhyNot("--make raw --dir d --items 0 --item-bytes 1"), HasSubstr("--items"));
  EXPECT_THAT(WhyNot("--make raw --dir d --items 1 --item-bytes x"),
              HasSubstr("--item-bytes: \"x\""));
  EXPECT_THAT(WhyNot("--make raw --dir d --items 1 --item-bytes 0"), HasSubstr("--item-bytes: 0"));
  EXPECT_THAT(WhyNot("--make raw --dir d --items 1 --item-bytes 3 --dtype f16"),
              HasSubstr("3 bytes are no whole elements of f16"));
  EXPECT_THAT(WhyNot("--make raw --dir d --items 1 --item-bytes 1 --dtype q8"),
              HasSubstr("--dtype: unknown dtype \"q8\""));
  EXPECT_THAT(WhyNot("--make raw --dir d --items 1000000000 --item-bytes 1000G"),
              HasSubstr("does not fit"));
  EXPECT_THAT(WhyNot("--make raw --dir d --items 2000000 --item-bytes 1 --items-per-object 1"),
              HasSubstr("--items-per-object: 2000000 objects"));
  EXPECT_THAT(WhyNot("--make safetensors --dir d --items 5000000 --item-bytes 1"),
              HasSubstr("a tensor per item"));
  EXPECT_THAT(WhyNot("--make raw --dir d --items 1 --item-bytes 1 --what"), HasSubstr("--what"));
}

}  // namespace
}  // namespace sluice::bench
