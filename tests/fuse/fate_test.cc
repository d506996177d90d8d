// The parts of the slow file system: the fate of each read, and replies that come later.
#include <atomic>
#include <cstdlib>
#include <latch>
#include <vector>

#include "fuse/slow_fs_parts.h"
#include "gtest/gtest.h"

namespace sluice::fuse {
namespace {

constexpr int kReads = 100000;

TEST(FateTest, IsAFunctionOfItsArguments) {
  const FatePlan plan = {.latency_ms = 10, .jitter = 0.5, .eio_share = 0.5};
  int equal = 0;
  FatePlan other = plan;
  other.seed = 1;
  for (uint64_t offset = 0; offset < 100; ++offset) {
    const Fate fate = FateOf(plan, "a/b", offset << 20, 3);
    const Fate again = FateOf(plan, "a/b", offset << 20, 3);
    EXPECT_EQ(fate.delay_ns, again.delay_ns);
    EXPECT_EQ(fate.outcome, again.outcome);
    equal += fate.delay_ns == FateOf(plan, "a/b", offset << 20, 4).delay_ns ? 1 : 0;
    equal += fate.delay_ns == FateOf(plan, "a/c", offset << 20, 3).delay_ns ? 1 : 0;
    equal += fate.delay_ns == FateOf(plan, "a/b", (offset << 20) + 1, 3).delay_ns ? 1 : 0;
    equal += fate.delay_ns == FateOf(other, "a/b", offset << 20, 3).delay_ns ? 1 : 0;
  }
  EXPECT_LT(equal, 4);
}

TEST(FateTest, DelaysStayWithinTheirBounds) {
  FatePlan plan = {.latency_ms = 20};
  EXPECT_EQ(FateOf(plan, "x", 0, 0).delay_ns, 20'000'000);
  plan.jitter = 0.25;
  plan.tail_percent = 1;
  plan.tail_factor = 10;
  int slow = 0;
  double sum_ms = 0;
  for (int i = 0; i < kReads; ++i) {
    const double delay_ms = static_cast<double>(FateOf(plan, "x", 4096u * i, 0).delay_ns) / 1e6;
    if (delay_ms > 100) {
      ++slow;
      EXPECT_GE(delay_ms, 150);
      EXPECT_LE(delay_ms, 250);
    } else {
      sum_ms += delay_ms;
      EXPECT_GE(delay_ms, 15);
      EXPECT_LE(delay_ms, 25);
    }
  }
  EXPECT_NEAR(slow, kReads / 100, kReads / 1000);
  EXPECT_NEAR(sum_ms / (kReads - slow), 20, 0.1);
}

int Count(const FatePlan& plan, Outcome outcome, int attempt) {
  int count = 0;
  for (int i = 0; i < kReads; ++i) {
    count += FateOf(plan, "x", 4096u * i, attempt).outcome == outcome ? 1 : 0;
  }
  return count;
}

TEST(FateTest, FaultsAreShares) {
  FatePlan plan;
  ASSERT_TRUE(ParseFaults("eio:0.1,short:0.2,truncate:0.05", &plan).ok());
  EXPECT_NEAR(Count(plan, Outcome::kError, 0), kReads * 0.1, kReads / 100);
  EXPECT_NEAR(Count(plan, Outcome::kTruncated, 0), kReads * 0.9 * 0.05, kReads / 100);
  EXPECT_NEAR(Count(plan, Outcome::kShort, 0), kReads * 0.9 * 0.95 * 0.2, kReads / 100);
}

TEST(FateTest, SomeErrorsPassAndSomeStay) {
  FatePlan passing, staying;
  ASSERT_TRUE(ParseFaults("eio:0.5", &passing).ok());
  ASSERT_TRUE(ParseFaults("dead:0.5", &staying).ok());
  int changed = 0;
  for (uint64_t offset = 0; offset < 100; ++offset) {
    EXPECT_EQ(FateOf(staying, "x", offset, 0).outcome, FateOf(staying, "x", offset, 1).outcome);
    changed += FateOf(passing, "x", offset, 0).outcome != FateOf(passing, "x", offset, 1).outcome;
  }
  EXPECT_GT(changed, 20);
  EXPECT_LT(changed, 80);
}

TEST(FateTest, RefusesFaultsItDoesNotKnow) {
  FatePlan plan;
  for (const char* text : {"eio", "eio:", "eio:x", "eio:-0.1", "eio:1.1", "eio:nan", "fire:0.1"}) {
    EXPECT_EQ(ParseFaults(text, &plan).code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_TRUE(ParseFaults("", &plan).ok());
}

constexpr int64_t kLongNs = int64_t{3600} * 1'000'000'000;

TEST(DelayedRepliesTest, ComeInTheOrderInWhichTheyAreDue) {
  std::vector<int> order;
  DelayedReplies replies(1, 0);
  for (const int n : {3, 1, 4, 2}) replies.Add(n * kLongNs, [n, &order] { order.push_back(n); });
  replies.Stop();  // has no patience, but keeps the order
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
}

TEST(DelayedRepliesTest, ALateOneKeepsNobodyWaiting) {
  std::latch soon(100);
  std::atomic<bool> late = false;
  DelayedReplies replies(1, 0);
  replies.Add(kLongNs, [&late] { late = true; });
  for (int i = 0; i < 100; ++i) replies.Add(0, [&soon] { soon.count_down(); });
  soon.wait();
  EXPECT_FALSE(late);
  replies.Stop();
  EXPECT_TRUE(late) << "the end runs what is left";
}

TEST(DelayedRepliesTest, HoldsTheFirstUntilAllOfThemAreThere) {
  constexpr int kHeld = 50;
  std::atomic<int> ran = 0;
  std::latch all(kHeld), free(1);
  DelayedReplies replies(2, kHeld);
  for (int i = 1; i < kHeld; ++i) {
    replies.Add(0, [&ran, &all] {
      ++ran;
      all.count_down();
    });
  }
  replies.AddFree(0, [&free] { free.count_down(); });
  free.wait();
  EXPECT_EQ(ran, 0);
  replies.Add(0, [&all] { all.count_down(); });
  all.wait();
  std::latch later(1);
  replies.Add(0, [&later] { later.count_down(); });  // held no more
  later.wait();
}

TEST(DelayedRepliesTest, TheEndRunsEachOnce) {
  std::atomic<int> ran = 0;
  DelayedReplies replies(3, 1000);
  for (int i = 0; i < 500; ++i) replies.Add(i % 2 == 0 ? 0 : kLongNs, [&ran] { ++ran; });
  replies.Stop();
  EXPECT_EQ(ran, 500);
  replies.Add(kLongNs, [&ran] { ++ran; });
  EXPECT_EQ(ran, 501) << "after the end, at once";
}

}  // namespace
}  // namespace sluice::fuse
