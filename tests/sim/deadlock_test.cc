// Random jobs under each rule, with each premise of law 2 on and off, and what is told of a stall.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>

#include "deadlock/campaign.h"
#include "deadlock/engine_script.h"
#include "deadlock/random.h"
#include "deadlock/random_job.h"
#include "deadlock/rules.h"
#include "deadlock/shrink.h"
#include "deadlock/world.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::deadlock {
namespace {

using ::testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kRuns = 300;
#else
constexpr int64_t kRuns = 3000;
#endif

CampaignResult Campaign(const Rules& rules, int64_t runs, int64_t first = 0) {
  const CampaignOptions options{.rules = rules, .seed = 6, .first = first, .runs = runs};
  CampaignResult result = RunCampaign(options, [](const CampaignResult&) { return true; });
  std::cout << NameOf(rules.rule)
            << (rules.off ? std::string(" without ") + NameOf(*rules.off) : "") << ": "
            << result.stalled << " of " << result.runs << " runs stalled\n";
  return result;
}

TEST(Deadlock, TheEngineFinishesEveryRun) {
  const CampaignResult result = Campaign({}, kRuns);
  EXPECT_EQ(result.runs, kRuns);
  EXPECT_EQ(result.stalled, 0) << result.smallest->script;
  EXPECT_FALSE(result.smallest.has_value());
  // Most budgets are what holds a job back, or the rule would not be tried.
  EXPECT_GT(result.reached_budget, kRuns / 2);
}

TEST(Deadlock, StrictOrderFinishesEveryRun) {
  const CampaignResult result = Campaign({.rule = GateRule::kOrdered}, kRuns);
  EXPECT_EQ(result.stalled, 0) << result.smallest->script;
}

TEST(Deadlock, APlainSemaphoreStalls) {
  const CampaignResult result = Campaign({.rule = GateRule::kPlain}, kRuns / 10);
  ASSERT_GT(result.stalled, 0);
  EXPECT_THAT(result.smallest->script, HasSubstr("> settle\nstalled\n"));
  // Two ranks that each hold what the other cannot take are enough.
  EXPECT_LE(result.smallest->job.buckets.size(), 3u);
  EXPECT_LE(result.smallest->job.ranks, 3);
}

class WithoutPremise : public ::testing::TestWithParam<Premise> {};

TEST_P(WithoutPremise, SomeRunsStall) {
  const CampaignResult result = Campaign({.off = GetParam()}, kRuns);
  ASSERT_GT(result.stalled, 0);
  EXPECT_THAT(result.smallest->script, HasSubstr("nothing can happen"));
  // It is this premise that stalls the smallest of them: with it, no order of events does.
  for (uint64_t order = 0; order < 200; ++order) {
    EXPECT_TRUE(Play(result.smallest->job, {}, Random(order)).complete);
  }
}

INSTANTIATE_TEST_SUITE_P(All, WithoutPremise, ::testing::ValuesIn(kPremises), [](const auto& test) {
  std::string name = NameOf(test.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Deadlock, ARunDependsOnItsNumberAndSeedAlone) {
  const Rules plain{.rule = GateRule::kPlain};
  const CampaignResult many = Campaign(plain, 200);
  ASSERT_GE(many.first_stalled, 0);
  const CampaignResult one = Campaign(plain, 1, many.first_stalled);
  EXPECT_EQ(one.stalled, 1);
  EXPECT_EQ(one.first_stalled, many.first_stalled);
  const CampaignResult again = Campaign(plain, 1, many.first_stalled);
  EXPECT_EQ(again.smallest->script, one.smallest->script);
}

TEST(Deadlock, ACampaignEndsWhenItIsTold) {
  const CampaignResult result =
      RunCampaign({.rules = {.rule = GateRule::kPlain}, .runs = 1000},
                  [](const CampaignResult& so_far) { return so_far.runs < 100; });
  EXPECT_EQ(result.runs, 100);
  EXPECT_EQ(result.smallest.has_value(), result.stalled > 0);
}

TEST(Deadlock, ShrinkingKeepsTheStallAndLeavesLess) {
  const Rules plain{.rule = GateRule::kPlain};
  int shrunk = 0;
  for (uint64_t run = 0; run < 60 && shrunk < 5; ++run) {
    Random random(1, run);
    const Job job = RandomJob(random, 8);
    if (Play(job, plain, random).complete) continue;
    const StalledJob smaller = Shrink({.job = job, .order = random}, plain);
    EXPECT_FALSE(Play(smaller.job, plain, smaller.order).complete);
    EXPECT_LT(SizeOf(smaller.job), SizeOf(job));
    ++shrunk;
  }
  EXPECT_EQ(shrunk, 5);
}

// What the smallest stalled run prints is a script that says the same when it is run again.
TEST(Deadlock, ScriptsReplay) {
  const CampaignResult result = Campaign({.rule = GateRule::kPlain}, 300);
  ASSERT_TRUE(result.smallest.has_value());
  EXPECT_EQ(RunEngineScript(result.smallest->script), result.smallest->script);
}

TEST(DeadlockJobs, HaveEverythingThatIsSaidOfThem) {
  int members_most = 0;
  int owners = 0;
  int relays = 0;
  int runs_most = 0;
  int lanes_most = 0;
  for (uint64_t run = 0; run < 300; ++run) {
    Random random(2, run);
    const Job job = RandomJob(random, 6);
    EXPECT_GE(job.ranks, 2);
    EXPECT_LE(job.ranks, 6);
    EXPECT_GE(job.options.slots, 1);
    EXPECT_TRUE(std::is_sorted(job.run.begin(), job.run.end()));
    runs_most = std::max(runs_most, job.runs());
    lanes_most = std::max(lanes_most, job.options.lanes);
    for (const JobBucket& bucket : job.buckets) {
      members_most = std::max(members_most, static_cast<int>(bucket.size()));
      for (const JobMember& member : bucket) {
        EXPECT_LT(member.rank, job.ranks);
        owners += member.owner ? 1 : 0;
        relays += member.stages == kStageMove ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(members_most, 5);
  EXPECT_EQ(runs_most, 3);
  EXPECT_EQ(lanes_most, 2);
  EXPECT_GT(owners, 0);
  EXPECT_GT(relays, 0);
}

TEST(DeadlockRules, NamesAreParsed) {
  for (const GateRule rule : kGateRules) EXPECT_EQ(*ParseGateRule(NameOf(rule)), rule);
  for (const Premise premise : kPremises) EXPECT_EQ(*ParsePremise(NameOf(premise)), premise);
  EXPECT_THAT(std::string(ParseGateRule("fair").status().message()),
              HasSubstr("\"fair\" is none of plain, ordered, escape"));
  EXPECT_THAT(std::string(ParsePremise("").status().message()), HasSubstr("start-order"));
}

}  // namespace
}  // namespace sluice::deadlock
