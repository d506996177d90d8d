// What is drawn for a read, and the text that faults are given as.
#include "storage/read_fate.h"

#include <map>
#include <string>

#include "gtest/gtest.h"
#include "storage/fault_spec.h"

namespace sluice {
namespace {

using Fault = ReadFate::Fault;

constexpr int kItems = 20'000;

TEST(FaultSpec, ReadsEachKind) {
  const FaultSpec spec = *ParseFaultSpec("hang:0.001,transient:0.01x3,permanent:0.25,short:1e-3");
  EXPECT_EQ(spec.transient, 0.01);
  EXPECT_EQ(spec.transient_attempts, 3);
  EXPECT_EQ(spec.permanent, 0.25);
  EXPECT_EQ(spec.short_object, 0.001);
  EXPECT_EQ(spec.hang, 0.001);
  EXPECT_EQ(ParseFaultSpec("transient:1")->transient_attempts, 1);
  EXPECT_FALSE(ParseFaultSpec("")->any());
}

TEST(FaultSpec, RefusesAnythingElse) {
  for (const std::string text :
       {"slow:0.1", "transient", "transient:", "transient:x", "transient:1.5", "transient:-0.1",
        "transient:nan", "transient:0.1x0", "transient:0.1x", "hang:0.1x2", ",", "hang:0.1,",
        "hang:0.1,hang:0.2", "permanent:0.6,short:0.6", "transient:0.6,hang:0.6"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseFaultSpec(text).status())) << text;
  }
}

TEST(ReadFate, IsAFunctionOfSeedItemAndAttempt) {
  DelayOptions options = {.seed = 7, .latency_ns = 1'000'000, .jitter = 0.5};
  options.faults = *ParseFaultSpec("transient:0.5x9");
  int differ = 0;
  for (int item = 0; item < 100; ++item) {
    const ReadFate fate = FateOf(options, item, 1);
    EXPECT_EQ(fate.latency_ns, FateOf(options, item, 1).latency_ns);
    EXPECT_EQ(fate.fault, FateOf(options, item, 1).fault);
    differ += fate.fault != FateOf(options, item, 2).fault;
  }
  EXPECT_GT(differ, 20) << "attempts are not drawn one by one";
  DelayOptions other = options;
  other.seed = 8;
  EXPECT_NE(FateOf(options, 0, 0).latency_ns, FateOf(other, 0, 0).latency_ns);
}

TEST(ReadFate, LatencyStaysWithinItsJitter) {
  const DelayOptions options = {.latency_ns = 1'000'000, .jitter = 0.25};
  double sum = 0;
  for (int item = 0; item < kItems; ++item) {
    const int64_t latency_ns = FateOf(options, item, 0).latency_ns;
    EXPECT_GE(latency_ns, 750'000);
    EXPECT_LE(latency_ns, 1'250'000);
    sum += static_cast<double>(latency_ns);
  }
  EXPECT_NEAR(sum / kItems, 1e6, 5e3);
  EXPECT_EQ(FateOf({.latency_ns = 5}, 3, 0).latency_ns, 5);
}

TEST(ReadFate, TailIsAsLongAndAsFrequentAsAsked) {
  const DelayOptions options = {.latency_ns = 1000, .tail_percent = 5, .tail_factor = 10};
  std::map<int64_t, int> counts;
  for (int item = 0; item < kItems; ++item) ++counts[FateOf(options, item, 0).latency_ns];
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts[10'000], kItems * 0.05, kItems * 0.01);
}

TEST(ReadFate, FaultsAreAsFrequentAsAsked) {
  DelayOptions options;
  options.faults = *ParseFaultSpec("transient:0.1,permanent:0.05,short:0.02,hang:0.03");
  std::map<Fault, int> first;
  std::map<Fault, int> second;
  for (int item = 0; item < kItems; ++item) {
    const Fault fault = FateOf(options, item, 0).fault;
    const Fault again = FateOf(options, item, 1).fault;
    ++first[fault];
    ++second[again];
    const auto stays = [](Fault f) { return f == Fault::kPermanent || f == Fault::kShort; };
    if (stays(fault) || stays(again)) {
      EXPECT_EQ(fault, again);
    }
  }
  const double rest = 0.93 * kItems;
  EXPECT_NEAR(first[Fault::kPermanent], 0.05 * kItems, 0.01 * kItems);
  EXPECT_NEAR(first[Fault::kShort], 0.02 * kItems, 0.01 * kItems);
  EXPECT_NEAR(first[Fault::kTransient], 0.1 * rest, 0.01 * kItems);
  EXPECT_NEAR(first[Fault::kHang], 0.03 * rest, 0.01 * kItems);
  EXPECT_EQ(second[Fault::kTransient], 0) << "beyond the attempts that can fail";
}

TEST(ReadFate, RefusesOptionsOutOfRange) {
  EXPECT_TRUE(CheckDelayOptions({}).ok());
  for (const DelayOptions& options :
       {DelayOptions{.latency_ns = -1}, DelayOptions{.jitter = 1.5}, DelayOptions{.jitter = -0.5},
        DelayOptions{.tail_percent = 101}, DelayOptions{.tail_factor = -1},
        DelayOptions{.latency_ns = 1'000'000'000, .tail_factor = 1e30}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckDelayOptions(options)));
  }
}

}  // namespace
}  // namespace sluice
