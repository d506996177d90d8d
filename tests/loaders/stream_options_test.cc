// Flags that are texts.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/stream/describe_stream.h"
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
  options.stream.reads.exchange = false;
  options.items = 12;
  ASSERT_TRUE(ParseStreamTexts(&options).ok());
  EXPECT_EQ(options.share, "deal");
  EXPECT_EQ(StreamOptionsOf(options, 2, 5).selection, (Selection{2, 5, 12}));
}

TEST(StreamBenchOptionsTest, OrdersOfAGenerator) {
  StreamBenchOptions options;
  options.source = "generator";
  options.items = 10;
  options.stream.source.item_bytes = 1024;
  ASSERT_TRUE(ParseStreamTexts(&options).ok());
  EXPECT_EQ(StreamOptionsOf(options, 0, 1).source.generate_order, GenerateOrder::kFree);
  options.generate_order = "one-ahead";
  ASSERT_TRUE(ParseStreamTexts(&options).ok());
  EXPECT_EQ(StreamOptionsOf(options, 0, 1).source.generate_order, GenerateOrder::kOneAhead);
  options.generate_order = "after-update";
  ASSERT_TRUE(ParseStreamTexts(&options).ok());
  EXPECT_EQ(StreamOptionsOf(options, 0, 1).source.generate_order, GenerateOrder::kAfterUpdate);
  options.baseline_texts = {"loop"};
  EXPECT_TRUE(ParseStreamTexts(&options).ok());
  options.baseline_texts = {"serial"};
  EXPECT_THAT(std::string(ParseStreamTexts(&options).message()), HasSubstr("know no updates"));
}

TEST(StreamBenchOptionsTest, Transforms) {
  StreamBenchOptions options;
  options.source = "file:/data";
  options.transform_flags.types = "u8:bf16:0.5:-1";
  ASSERT_TRUE(ParseStreamTexts(&options).ok());
  EXPECT_EQ(options.stream.buffers.transform->dst, DType::kBF16);
  EXPECT_EQ(options.stream.buffers.transform->bias, -1);
  options.transform_flags.types = "u8:bf16:half:0";
  EXPECT_THAT(std::string(ParseStreamTexts(&options).message()), HasSubstr("--transform"));
}

TEST(StreamBenchOptionsTest, TransformsOfImages) {
  StreamBenchOptions options;
  options.source = "file:/data";
  options.transform_flags.types = "u8:f32";
  options.transform_flags.channel_scale = "0.5,1,2";
  options.transform_flags.channel_bias = "-1,0,1e2";
  options.transform_flags.item_shape = "224,200,3";
  options.transform_flags.crop = "10,20,100,90";
  options.transform_flags.planar = true;
  ASSERT_TRUE(ParseStreamTexts(&options).ok()) << ParseStreamTexts(&options);
  const ItemTransform& transform = *options.stream.buffers.transform;
  EXPECT_EQ(transform.scale, 1);
  EXPECT_THAT(transform.channel_scale, testing::ElementsAre(0.5F, 1, 2));
  EXPECT_THAT(transform.channel_bias, testing::ElementsAre(-1, 0, 100));
  EXPECT_THAT(transform.shape, testing::ElementsAre(224, 200, 3));
  EXPECT_EQ(transform.crop->left, 20);
  EXPECT_EQ(transform.crop->height, 100);
  EXPECT_TRUE(transform.planar);
  EXPECT_EQ(TransformText(options.transform_flags),
            "u8:f32 --channel-scale 0.5,1,2 --channel-bias -1,0,1e2 --item-shape 224,200,3 --crop "
            "10,20,100,90 --planar");
  const auto refused = [&options](std::string TransformFlags::*text, const char* value,
                                  const char* why) {
    StreamBenchOptions bad = options;
    bad.transform_flags.*text = value;
    EXPECT_THAT(std::string(ParseStreamTexts(&bad).message()), HasSubstr(why));
  };
  refused(&TransformFlags::channel_scale, "1,x,2", "--channel-scale: \"1,x,2\"");
  refused(&TransformFlags::channel_scale, "1,nan,2", "not a finite number");
  refused(&TransformFlags::channel_bias, "1,2", "channel_bias of 2");
  refused(&TransformFlags::item_shape, "224,224", "HEIGHT,WIDTH,CHANNELS");
  refused(&TransformFlags::crop, "1,2,3", "TOP,LEFT,HEIGHT,WIDTH");
  refused(&TransformFlags::crop, "200,0,30,1", "reaches out");
  refused(&TransformFlags::types, "u8:f32:1", "SRC:DST");
  refused(&TransformFlags::types, "f32:u8", "no transform leads");
  refused(&TransformFlags::types, "", "goes with --transform");
}

TEST(StreamBenchOptionsTest, EachFieldHasAFlag) {
  StreamBenchOptions options;
  FlagGroups groups = StreamFlags(&options);
  const FlagRanges<StreamOptions> ranges(&options.stream, &groups);
  EXPECT_THAT(
      ranges.without_flag(),
      testing::ElementsAre(
          // By flags with other values: --source, --format, --items, --generate-order,
          // --share, --order, --device, --transform, --trace-epochs.
          "source.uri", "source.format", "source.generator_items", "source.generate_order",
          "selection.first", "selection.step", "selection.end", "order.in_order",
          // Nobody has measured others than the defaults.
          "reads.hedge.quantile", "reads.hedge.extra_share_max", "reads.retry.backoff",
          // Of consumers that have streams of a GPU.
          "buffers.device", "buffers.await_in_stream", "buffers.transform", "trace_epochs"));
  EXPECT_LE(KnobsOf(StreamConfig(options)).size(), 63U);
}

}  // namespace
}  // namespace sluice::bench
