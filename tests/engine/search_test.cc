// Liveness and limits by exhaustive search: every order of events on small single engines and on
// small jobs. Controls show that the same search finds a stuck job where there is one.
#include <cstddef>
#include <utility>
#include <vector>

#include "deadlock/job.h"
#include "deadlock/plain_gate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job_kinds.h"
#include "job_search.h"
#include "oracle/sampled.h"
#include "search_totals.h"

namespace sluice::deadlock {
namespace {

constexpr StageSet kF = kStageFill;
constexpr StageSet kM = kStageMove;
constexpr StageSet kD = kStageDrain;

// One engine without peers: every bucket, in channel 0 or 1.
Job Single(const EngineOptions& options, const std::vector<JobBucket>& kinds,
           const std::vector<int>& choice) {
  std::vector<JobBucket> buckets;
  std::vector<int> channels;
  for (const int digit : choice) {
    buckets.push_back(kinds[static_cast<size_t>(digit) / 2]);
    channels.push_back(digit % 2);
  }
  Job job = WithChannels(1, options, std::move(buckets));
  job.channel = std::move(channels);
  job.options.channels = 2;
  return job;
}

TEST(EveryOrder, OfOneEngine) {
  const std::vector<JobBucket> kinds = {Alone(0, kF | kM), Alone(0, kM | kD), Alone(0, kD),
                                        Alone(0, kM)};
  SearchTotals totals;
  for (const std::vector<int>& choice : AllSequences(8, 4)) {
    for (const int slots : {1, 2, 3}) {
      if (totals.LeavesOut()) continue;
      const EngineOptions options{.max_in_flight = 1 + slots % 2, .slots = slots, .look_ahead = 3};
      const Job job = Single(options, kinds, choice);
      ASSERT_NO_FATAL_FAILURE(totals.Add(job, Search<Engine>(job, Asking::kAnyTime)));
    }
  }
  totals.Print("one engine");
}

TEST(EveryOrder, OfOneEngineWithFailures) {
  const std::vector<JobBucket> kinds = {Alone(0, kF | kM), Alone(0, kM)};
  SearchTotals totals;
  for (const std::vector<int>& choice : AllSequences(4, 4)) {
    if (totals.LeavesOut()) continue;
    const EngineOptions options{.max_in_flight = 2, .slots = 2, .look_ahead = 4};
    const Job job = Single(options, kinds, choice);
    ASSERT_NO_FATAL_FAILURE(totals.Add(job, SearchWithFailures(job, Asking::kAnyTime)));
  }
  totals.Print("one engine with failures");
}

// All jobs, or every `stride`th from the one at `first` on.
void SearchAll(int ranks, const std::vector<std::vector<JobBucket>>& jobs, Asking asking,
               SearchTotals* totals, size_t first = 0, size_t stride = 1) {
  for (size_t i = first; i < jobs.size(); i += stride) {
    const std::vector<JobBucket>& buckets = jobs[i];
    for (const int slots : {1, 2}) {
      if (totals->LeavesOut()) continue;
      const EngineOptions options{
          .max_in_flight = slots == 1 ? 2 : 1, .slots = slots, .look_ahead = 2};
      const Job job = WithChannels(ranks, options, buckets);
      ASSERT_NO_FATAL_FAILURE(totals->Add(job, Search<Engine>(job, asking)));
    }
  }
}

TEST(EveryOrder, OfThreeBucketsAmongThreeRanks) {
  SearchTotals totals;
  SearchAll(3, AllJobs(3, AllKindsAmongThree(), 3), Asking::kAtOnce, &totals);
  totals.Print("three buckets among three ranks");
}

TEST(EveryOrder, OfFourBucketsBetweenTwoRanksWithLateAsking) {
  SearchTotals totals;
  SearchAll(2, AllJobs(2, AllKindsBetweenTwo(), 4), Asking::kAnyTime, &totals);
  totals.Print("four buckets between two ranks, asked at any time");
}

// A tenth of these jobs where tests are not thorough, others each day.
TEST(EveryOrder, OfFourBucketsAmongThreeRanks) {
  const size_t stride = oracle::IsThorough() ? 1 : 10;
  SearchTotals totals;
  SearchAll(3, AllJobs(3, AllKindsAmongThree(), 4), Asking::kAtOnce, &totals,
            oracle::FirstSeed() / 1000 % stride, stride);
  totals.Print("four buckets among three ranks");
}

TEST(EveryOrder, OfRingsAmongFourRanks) {
  SearchTotals totals;
  SearchAll(4, {{Pair(0, 1), Pair(1, 2), Pair(2, 3), Pair(3, 0)}}, Asking::kAtOnce, &totals);
  SearchAll(4, {{Pair(3, 0), Pair(0, 1), Pair(1, 2), Pair(2, 3)}}, Asking::kAtOnce, &totals);
  totals.Print("rings among four ranks");
}

// Two to four parties, and ranks that meet in several channels.
TEST(EveryOrder, OfJobsAmongFourRanks) {
  const JobBucket reduce = {{.rank = 0}, {.rank = 3}, {.rank = 1}, {.rank = 2}};
  SearchTotals totals;
  SearchAll(4, {{Pair(1, 2), reduce, Pair(3, 0), Pair(2, 3)}, {reduce, Relayed(1, 2, 3), reduce}},
            Asking::kAtOnce, &totals);
  SearchAll(4, {{Relayed(3, 1, 0), Relayed(0, 2, 3), Pair(1, 2), Pair(2, 1)}}, Asking::kAtOnce,
            &totals);
  totals.Print("jobs among four ranks");
}

TEST(EveryOrder, ReachesTheBudget) {
  for (const int slots : {1, 2, 3}) {
    const EngineOptions options{.max_in_flight = 1, .slots = slots, .look_ahead = 4};
    const Job job = WithChannels(3, options, {Pair(0, 1), Pair(1, 2), Pair(2, 0), Pair(2, 1)});
    const SearchResult result = Search<Engine>(job, Asking::kAtOnce);
    EXPECT_EQ(result.stuck, 0);
    EXPECT_EQ(result.peak_slots, slots);
  }
}

// The control. Ranks feed what they send before what they receive, with a semaphore that admits
// what it is fed. They hold their slots for sends that no one has a slot to receive.
TEST(WithoutTheRule, SendsFirstGetsStuck) {
  const EngineOptions options{.max_in_flight = 2, .slots = 1, .look_ahead = 4};
  const Job job = WithChannels(3, options, {Pair(0, 1), Pair(1, 2), Pair(2, 0)});
  const SearchResult plain = Search<PlainGate>(job, Asking::kAtOnce, Feeding::kSendsFirst);
  EXPECT_EQ(plain.broken, "");
  EXPECT_GT(plain.stuck, 0);
  EXPECT_THAT(plain.trace, ::testing::HasSubstr("rank 0 feed"));
  EXPECT_EQ(Search<Engine>(job, Asking::kAtOnce).stuck, 0);
}

}  // namespace
}  // namespace sluice::deadlock
