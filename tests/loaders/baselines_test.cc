// The plain loaders deliver the same items as a stream, and fail where storage fails.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shards/make_shards.h"
#include "stream/baselines/baseline.h"
#include "stream/contents.h"
#include "stream/item_check.h"

namespace sluice::bench {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kItems = 23;
constexpr int64_t kItemBytes = 10'000;

class BaselinesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string made = testing::TempDir() + "sluice_loaders_XXXXXX";
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    directory_ = new std::string(made);
    ShardsPlan plan;
    plan.directory = made + "/data";
    plan.items = kItems;
    plan.item_bytes = kItemBytes;
    plan.items_per_object = 5;
    ASSERT_TRUE(MakeShards(plan).ok());
  }
  static void TearDownTestSuite() {
    std::filesystem::remove_all(*directory_);
    delete directory_;
  }

  void SetUp() override { options_.source = absl::StrCat("buffered:", *directory_, "/data"); }

  // Runs the mode and returns what came of it.
  RankOutcome Run(const std::string& mode_text) {
    EXPECT_TRUE(ParseStreamTexts(&options_).ok());
    StreamOptions stream = StreamOptionsOf(options_, 0, 1);
    stream.reads.retry.backoff = absl::Milliseconds(1);
    absl::StatusOr<Catalog> catalog = Catalog();
    if (!options_.is_generator()) catalog = FindCatalog(stream);
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    const auto contents = Contents::Make(options_, *std::move(catalog));
    EXPECT_TRUE(contents.ok()) << contents.status();
    if (options_.is_generator()) {
      stream.source.generator = MakeFillGenerator((*contents)->FillOf(ElementType::kU8), 0);
    }
    const auto plan = (*contents)->PlanOf(stream);
    EXPECT_TRUE(plan.ok()) << plan.status();
    const ItemCheck check(contents->get(), Check::kAll, options_.stream.buffers.transform);
    ProgressBar bar(false);
    ConsumerOptions consume;
    consume.stop_items = options_.stop_items;
    Consumer consumer(contents->get(), &check, *plan, consume, &bar);
    const BaselineJob job = {&stream, DelayOf(options_), *plan, &consumer};
    const auto mode = ParseBaselineMode(mode_text);
    EXPECT_TRUE(mode.ok());
    RankOutcome outcome;
    consumer.Start();
    outcome.status = Deliver(*mode, job, &outcome);
    consumer.AddTo(&outcome);
    EXPECT_EQ(outcome.wrong, 0);
    EXPECT_LE(outcome.stats.slots_peak, outcome.stats.slots_max);
    EXPECT_LE(outcome.stats.budget_bytes_peak, outcome.stats.budget_bytes);
    return outcome;
  }

  static absl::Status Deliver(const Mode& mode, const BaselineJob& job, RankOutcome* outcome) {
    if (mode.kind == Mode::Kind::kLoop) return RunLoop(job, outcome);
    if (mode.kind == Mode::Kind::kSerial) return RunSerial(job, outcome);
    if (mode.kind == Mode::Kind::kWaves) return RunWaves(job, mode.slabs, outcome);
    return RunThreads(job, mode.workers, mode.ahead, outcome);
  }

  static inline std::string* directory_ = nullptr;
  StreamBenchOptions options_;
};

constexpr const char* kModes[] = {"serial",      "waves:1",     "waves:3",
                                  "threads:1x1", "threads:3x2", "threads:40x3"};

TEST_F(BaselinesTest, DeliverEverythingInOrder) {
  options_.stream.order.epochs = 2;
  options_.stream.order.shuffle = true;
  for (const char* mode : kModes) {
    const RankOutcome outcome = Run(mode);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.stats.items, 2 * kItems) << mode;
    EXPECT_EQ(outcome.stats.bytes, 2 * kItems * kItemBytes);
    EXPECT_EQ(outcome.stats.requests, 2 * kItems);
    EXPECT_EQ(outcome.stats.bytes_read, 2 * kItems * kItemBytes);
  }
}

TEST_F(BaselinesTest, TransformOnTheWay) {
  options_.transform_flags.types = "u8:bf16:0.37:-1";
  for (const char* mode : kModes) EXPECT_EQ(Run(mode).stats.items, kItems) << mode;
  options_.transform_flags.types = "u8:f32";
  options_.transform_flags.item_shape = absl::StrCat("2,", kItemBytes / 4, ",2");
  options_.transform_flags.channel_scale = "0.5,2";
  options_.transform_flags.channel_bias = "1,0";
  options_.transform_flags.crop = absl::StrCat("1,3,1,", kItemBytes / 8);
  options_.transform_flags.planar = true;
  for (const char* mode : kModes) {
    const RankOutcome outcome = Run(mode);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.stats.items, kItems) << mode;
  }
}

TEST_F(BaselinesTest, TryAgainWhatIsTransient) {
  options_.fault = "transient:0.5";
  for (const char* mode : kModes) {
    const RankOutcome outcome = Run(mode);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.stats.items, kItems) << mode;
    EXPECT_GT(outcome.stats.retries, 0);
    EXPECT_EQ(outcome.stats.requests, kItems + outcome.stats.retries);
  }
}

TEST_F(BaselinesTest, EndWithTheFirstFailureForGood) {
  options_.fault = "permanent:0.3";
  for (const char* mode : kModes) {
    const RankOutcome outcome = Run(mode);
    EXPECT_TRUE(absl::IsFailedPrecondition(outcome.status)) << mode << outcome.status;
    EXPECT_LT(outcome.stats.items, kItems);
  }
  options_.fault = "transient:1x99";
  options_.stream.reads.retry.attempts_max = 2;
  for (const char* mode : kModes) {
    const RankOutcome outcome = Run(mode);
    EXPECT_TRUE(absl::IsUnavailable(outcome.status)) << mode << outcome.status;
    EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("after 2 attempts"));
  }
}

TEST_F(BaselinesTest, GiveUpRequestsThatHang) {
  options_.fault = "hang:1";
  options_.stream.reads.retry.attempts_max = 1;
  options_.stream.reads.retry.request_timeout = absl::Milliseconds(20);
  for (const char* mode : kModes) {
    const absl::Status status = Run(mode).status;
    EXPECT_TRUE(absl::IsCancelled(status)) << mode << ": " << status;
  }
}

TEST_F(BaselinesTest, StopWhenNoMoreIsWanted) {
  options_.stop_items = 6;
  for (const char* mode : kModes) {
    EXPECT_EQ(Run(mode).stats.items, 6) << mode;
  }
}

TEST_F(BaselinesTest, CutItemsIntoPiecesAsSluiceDoes) {
  options_.stream.reads.piece_bytes = 4096;
  options_.stream.reads.slots = 2;
  const RankOutcome outcome = Run("serial");
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.stats.requests, 3 * kItems);
  EXPECT_EQ(outcome.stats.slots_peak, 2);
}

// Pieces of an item may lie in several slabs.
TEST_F(BaselinesTest, WavesFillOneSlabAtATime) {
  options_.stream.reads.piece_bytes = 4096;
  options_.stream.reads.slots = 9;
  for (const char* mode : {"waves:1", "waves:2", "waves:4", "waves:9"}) {
    const RankOutcome outcome = Run(mode);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.stats.items, kItems) << mode;
    EXPECT_EQ(outcome.stats.requests, 3 * kItems) << mode;
    EXPECT_EQ(outcome.stats.slots_max, 9);
  }
  const RankOutcome outcome = Run("waves:10");
  EXPECT_TRUE(absl::IsInvalidArgument(outcome.status)) << outcome.status;
  EXPECT_THAT(std::string(outcome.status.message()), HasSubstr("9 slots"));
}

TEST_F(BaselinesTest, TakeWhatAGeneratorMakes) {
  options_.source = "generator";
  options_.items = 30;
  options_.stream.source.item_bytes = 777;
  for (const char* mode : kModes) EXPECT_EQ(Run(mode).stats.items, 30) << mode;
  options_.stream.order.epochs = 2;
  options_.stream.order.shuffle = true;
  const RankOutcome loop = Run("loop");
  EXPECT_TRUE(loop.status.ok()) << loop.status;
  EXPECT_EQ(loop.stats.items, 60);
  EXPECT_EQ(loop.stats.requests, 60);
  EXPECT_EQ(loop.stats.bytes_read, 60 * 777);
}

}  // namespace
}  // namespace sluice::bench
