// Flags that are texts.
#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/stream/describe_stream.h"
#include "stream/options.h"
#include "stream/outcome.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
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
          // --share, --order, --device, --transform, --trace-epochs. Credentials are a function,
          // and an index that is no file's is a program's.
          "source.uri", "source.format", "source.index", "source.generator_items",
          "source.generate_order", "s3.credentials", "selection.first", "selection.step",
          "selection.end", "order.in_order",
          // Nobody has measured others than the defaults.
          "reads.hedge.quantile", "reads.hedge.extra_share_max", "reads.retry.backoff",
          // Of consumers that have streams of a GPU.
          "buffers.device", "buffers.await_in_stream", "buffers.transform", "trace_epochs"));
  EXPECT_LE(KnobsOf(StreamConfig(options)).size(), 63U);
}

RankOutcome Outcome(double seconds, int64_t items) {
  RankOutcome outcome;
  outcome.stats.items = items;
  outcome.stats.bytes = 100 * items;
  outcome.seconds = seconds;
  outcome.stats.first_item = absl::Seconds(1);
  outcome.half_s = seconds / 2;
  outcome.later_wait_s = 0.5;
  outcome.stats.slots_peak = items;
  outcome.stats.reading = absl::Milliseconds(250);
  return outcome;
}

TEST(OutcomeTest, TravelsAsText) {
  RankOutcome sent = Outcome(2.5, 7);
  sent.status = absl::NotFoundError("no \"object\"");
  sent.cursor = "here";
  sent.wrong = 3;
  sent.stats.staleness_max = 2;
  sent.item_hash = 0xFEDCBA9876543210u;  // more than a signed number holds
  const RankOutcome got = DecodeOutcome(Encode(sent));
  EXPECT_EQ(got.status, sent.status);
  EXPECT_EQ(got.cursor, "here");
  EXPECT_EQ(got.stats.items, 7);
  EXPECT_EQ(got.wrong, 3);
  EXPECT_EQ(got.stats.staleness_max, 2);
  EXPECT_EQ(got.item_hash, sent.item_hash);
  EXPECT_EQ(got.seconds, 2.5);
  EXPECT_EQ(got.half_s, 1.25);
  EXPECT_EQ(got.stats.slots_peak, 7);
  EXPECT_EQ(got.stats.reading, absl::Milliseconds(250));
}

TEST(OutcomeTest, RanksAddUpByTheSlowestOnesTime) {
  const Result sum = SumOf("sluice", {Outcome(2, 10), Outcome(4, 30)});
  EXPECT_EQ(sum.total.stats.items, 40);
  EXPECT_EQ(sum.total.seconds, 4);
  EXPECT_EQ(sum.total.stats.first_item, absl::Seconds(1));
  EXPECT_EQ(sum.total.half_s, 2);
  EXPECT_EQ(sum.total.stats.slots_peak, 30);
  EXPECT_EQ(sum.total.stats.reading, absl::Milliseconds(500));
  EXPECT_EQ(sum.stall_share, 0.25);  // 2 x 0.5 s of 1 s and 3 s
}

TEST(OutcomeTest, TheHashOfItemsIsOfAllRanksInTheirOrder) {
  RankOutcome one;
  RankOutcome other;
  one.item_hash = 1;
  other.item_hash = 2;
  const uint64_t hash = SumOf("sluice", {one, other}).total.item_hash;
  EXPECT_EQ(SumOf("loop", {one, other}).total.item_hash, hash);
  EXPECT_NE(SumOf("loop", {other, one}).total.item_hash, hash);
  EXPECT_NE(SumOf("loop", {one, one}).total.item_hash, hash);
}

TEST(OutcomeTest, TheMedianRoundCountsAndEveryWrongElement) {
  std::vector<Result> rounds;
  for (const double seconds : {5, 2, 9, 3}) {
    rounds.push_back(SumOf("serial", {Outcome(seconds, static_cast<int64_t>(seconds))}));
    rounds.back().total.wrong = 1;
  }
  const Result median = MedianOf(rounds);
  EXPECT_EQ(median.mode, "serial");
  EXPECT_EQ(median.total.seconds, 3);
  EXPECT_EQ(median.total.stats.items, 3);
  EXPECT_EQ(median.total.wrong, 4);
  EXPECT_EQ(median.total.stats.slots_peak, 9);
  EXPECT_THAT(median.all_seconds, ElementsAre(5, 2, 9, 3));
}

}  // namespace
}  // namespace sluice::bench
