// Flags that are texts.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stream/options.h"

namespace sluice::bench {
namespace {

using ::testing::HasSubstr;

TEST(ModeTest, NamesAreReadBack) {
  for (const char* text :
       {"warm", "serial", "loop", "waves:1", "waves:8", "threads:8x4", "threads:1x1"}) {
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

TEST(StreamBenchOptionsTest, OrdersOfAGenerator) {
  StreamBenchOptions options;
  options.source = "generator";
  options.items = 10;
  options.item_bytes_text = "1K";
  ASSERT_TRUE(ParseStreamTexts(&options).ok());
  EXPECT_EQ(StreamOptionsOf(options, 0, 1).source.generate_order, GenerateOrder::kFree);
  options.generate_order = "one-ahead";
  options.generator_threads = 3;
  ASSERT_TRUE(ParseStreamTexts(&options).ok());
  EXPECT_EQ(StreamOptionsOf(options, 0, 1).source.generate_order, GenerateOrder::kOneAhead);
  EXPECT_EQ(StreamOptionsOf(options, 0, 1).source.generator_threads, 3);
  options.generate_order = "after-update";
  ASSERT_TRUE(ParseStreamTexts(&options).ok());
  EXPECT_EQ(StreamOptionsOf(options, 0, 1).source.generate_order, GenerateOrder::kAfterUpdate);
  options.baseline_texts = {"loop"};
  EXPECT_TRUE(ParseStreamTexts(&options).ok());
  options.baseline_texts = {"serial"};
  EXPECT_THAT(std::string(ParseStreamTexts(&options).message()), HasSubstr("know no updates"));
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

TEST(StreamBenchOptionsTest, TransformsOfImages) {
  StreamBenchOptions options;
  options.source = "file:/data";
  options.transform_text = "u8:f32";
  options.channel_scale_text = "0.5,1,2";
  options.channel_bias_text = "-1,0,1e2";
  options.item_shape_text = "224,200,3";
  options.crop_text = "10,20,100,90";
  options.planar = true;
  ASSERT_TRUE(ParseStreamTexts(&options).ok()) << ParseStreamTexts(&options);
  const ItemTransform& transform = *options.transform;
  EXPECT_EQ(transform.scale, 1);
  EXPECT_THAT(transform.channel_scale, testing::ElementsAre(0.5F, 1, 2));
  EXPECT_THAT(transform.channel_bias, testing::ElementsAre(-1, 0, 100));
  EXPECT_THAT(transform.shape, testing::ElementsAre(224, 200, 3));
  EXPECT_EQ(transform.crop->left, 20);
  EXPECT_EQ(transform.crop->height, 100);
  EXPECT_TRUE(transform.planar);
  EXPECT_EQ(TransformText(TransformFlagsOf(options)),
            "u8:f32 --channel-scale 0.5,1,2 --channel-bias -1,0,1e2 --item-shape 224,200,3 --crop "
            "10,20,100,90 --planar");
  const auto refused = [&options](std::string StreamBenchOptions::*text, const char* value,
                                  const char* why) {
    StreamBenchOptions bad = options;
    bad.*text = value;
    EXPECT_THAT(std::string(ParseStreamTexts(&bad).message()), HasSubstr(why));
  };
  refused(&StreamBenchOptions::channel_scale_text, "1,x,2", "--channel-scale: \"1,x,2\"");
  refused(&StreamBenchOptions::channel_scale_text, "1,nan,2", "not a finite number");
  refused(&StreamBenchOptions::channel_bias_text, "1,2", "channel_bias of 2");
  refused(&StreamBenchOptions::item_shape_text, "224,224", "HEIGHT,WIDTH,CHANNELS");
  refused(&StreamBenchOptions::crop_text, "1,2,3", "TOP,LEFT,HEIGHT,WIDTH");
  refused(&StreamBenchOptions::crop_text, "200,0,30,1", "reaches out");
  refused(&StreamBenchOptions::transform_text, "u8:f32:1", "SRC:DST");
  refused(&StreamBenchOptions::transform_text, "f32:u8", "no transform leads");
  refused(&StreamBenchOptions::transform_text, "", "goes with --transform");
}

TEST(StreamBenchOptionsTest, KnobsFitTheComparisonBetweenRanks) {
  EXPECT_LE(StreamKnobs(StreamBenchOptions()).size(), 64u);
}

}  // namespace
}  // namespace sluice::bench
