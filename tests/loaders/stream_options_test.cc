// Flags that are texts.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stream/options.h"

namespace sluice::bench {
namespace {

using ::testing::HasSubstr;

TEST(ModeTest, NamesAreReadBack) {
  for (const char* text : {"warm", "serial", "waves:1", "waves:8", "threads:8x4", "threads:1x1"}) {
    const auto mode = ParseBaselineMode(text);
    ASSERT_TRUE(mode.ok()) << mode.status();
    EXPECT_EQ(mode->Name(), text);
  }
  for (const char* text : {"", "sluice", "threads", "threads:8", "threads:x4", "threads:8x",
                           "waves", "waves:", "waves:0", "waves:-1", "waves:8x2", "waves:99999",
                           "threads:0x1", "threads:8x4x2", "threads:-1x1", "threads:9999x1"}) {
    EXPECT_FALSE(ParseBaselineMode(text).ok()) << text;
  }
}

TEST(StreamBenchOptionsTest, WhatRanksShareFollowsFromTheExchange) {
  StreamBenchOptions options;
  options.source = "file:/data";
  ASSERT_TRUE(ParseStreamTexts(&options).ok());
  EXPECT_EQ(options.share, "all");
  EXPECT_EQ(StreamOptionsOf(options, 2, 5).selection, Selection());
  options.share = "";
  options.exchange = 0;
  options.items = 12;
  ASSERT_TRUE(ParseStreamTexts(&options).ok());
  EXPECT_EQ(options.share, "deal");
  EXPECT_EQ(StreamOptionsOf(options, 2, 5).selection, (Selection{2, 5, 12}));
}

TEST(StreamBenchOptionsTest, SizesAndTransforms) {
  StreamBenchOptions options;
  options.source = "file:/data";
  options.budget_bytes_text = "64M";
  options.piece_bytes_text = "1.5K";
  options.transform_text = "u8:bf16:0.5:-1";
  ASSERT_TRUE(ParseStreamTexts(&options).ok());
  EXPECT_EQ(options.budget_bytes, 64 << 20);
  EXPECT_EQ(options.piece_bytes, 1536);
  EXPECT_EQ(options.transform->dst, DType::kBF16);
  EXPECT_EQ(options.transform->bias, -1);
  options.transform_text = "u8:bf16:half:0";
  EXPECT_THAT(std::string(ParseStreamTexts(&options).message()), HasSubstr("--transform"));
}

TEST(StreamBenchOptionsTest, KnobsFitTheComparisonBetweenRanks) {
  EXPECT_LE(StreamKnobs(StreamBenchOptions()).size(), 40u);
}

}  // namespace
}  // namespace sluice::bench
