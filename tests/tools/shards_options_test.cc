// The flags of `sluice-bench shards`.
#include <CLI/CLI.hpp>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shards/options.h"

namespace sluice::bench {
namespace {

using ::testing::HasSubstr;

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
  const auto other = Parse(
      "--make safetensors --dir d --items 10 --item-bytes 1K --items-per-object 4 --seed 9 "
      "--dtype bf16 --force");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->format, ShardFormat::kSafetensors);
  EXPECT_EQ(other->type, ElementType::kBF16);
  EXPECT_EQ(other->directory, "d");
  EXPECT_EQ(other->items, 10);
  EXPECT_EQ(other->item_bytes, 1024);
  EXPECT_EQ(other->items_per_object, 4);
  EXPECT_EQ(other->objects(), 3);
  EXPECT_EQ(other->seed, 9u);
  EXPECT_TRUE(other->force);
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
