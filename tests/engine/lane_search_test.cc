// Liveness and limits of several runs in several lanes, by exhaustive search. Runs start early on
// one rank and late on another, and a run is cancelled everywhere at different times.
#include <cstdint>
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

// Which run each bucket is in, and which lane each run.
struct Split {
  std::vector<int> run;
  std::vector<int> lane;
};

// A later run is more urgent, less urgent, or as urgent as an earlier one.
const std::vector<Split>& SplitsOfThree() {
  static const auto* const kSplits = new std::vector<Split>{
      {{0, 0, 1}, {1, 0}}, {{0, 1, 1}, {1, 0}},    {{0, 1, 1}, {0, 1}},
      {{0, 0, 1}, {0, 0}}, {{0, 1, 2}, {1, 0, 1}}, {{0, 1, 2}, {2, 1, 0}},
  };
  return *kSplits;
}

const std::vector<Split>& SplitsOfFour() {
  static const auto* const kSplits = new std::vector<Split>{
      {{0, 0, 1, 1}, {1, 0}},
      {{0, 0, 1, 1}, {0, 1}},
      {{0, 1, 1, 2}, {1, 0, 1}},
      {{0, 1, 2, 2}, {0, 1, 0}},
  };
  return *kSplits;
}

// Every job, in every split, under the tightest budget and a wider one, with each rank late in turn
// and none; of all these, every `stride`th, or a fifth of them where tests are not thorough.
template <class Visit>
void ForEachJob(int ranks, const std::vector<std::vector<JobBucket>>& jobs,
                const std::vector<Split>& splits, int64_t stride, const Visit& visit) {
  int64_t number = 0;
  stride *= oracle::IsThorough() ? 1 : 5;
  for (const std::vector<JobBucket>& buckets : jobs) {
    for (const Split& split : splits) {
      for (const int slots : {1, 2}) {
        for (unsigned late = 0; late < 1U << ranks; late = late == 0 ? 1 : late * 2) {
          if (number++ % stride != 0) continue;
          const EngineOptions options{
              .max_in_flight = slots == 1 ? 2 : 1, .slots = slots, .look_ahead = 2};
          Job job = WithRuns(WithChannels(ranks, options, buckets), split.run, split.lane);
          job.late_ranks = late;
          visit(std::move(job));
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

void SearchAll(int ranks, const std::vector<std::vector<JobBucket>>& jobs,
               const std::vector<Split>& splits, int64_t stride, Asking asking, const char* what) {
  SearchTotals totals;
  ForEachJob(ranks, jobs, splits, stride, [&](const Job& job) {
    if (!totals.LeavesOut()) totals.Add(job, Search<Engine>(job, asking));
  });
  totals.Print(what);
}

TEST(EveryOrderOfRuns, AmongThreeRanksSampled) {
  SearchAll(3, AllJobs(3, AllKindsAmongThree(), 3), SplitsOfThree(), 37, Asking::kAtOnce,
            "runs of three buckets among three ranks");
}

TEST(EveryOrderOfRuns, BetweenTwoRanks) {
  SearchAll(2, AllJobs(2, AllKindsBetweenTwo(), 4), SplitsOfFour(), 73, Asking::kAnyTime,
            "runs of four buckets between two ranks, asked at any time");
}

TEST(EveryOrderOfRuns, InRingsAmongFourRanks) {
  const std::vector<std::vector<JobBucket>> jobs = {
      {Pair(0, 1), Pair(1, 2), Pair(2, 3), Pair(3, 0)},
      {Pair(3, 0), Relayed(0, 1, 2), Pair(2, 3), Pair(1, 0)},
  };
  SearchAll(4, jobs, SplitsOfFour(), 3, Asking::kAtOnce, "runs in rings among four ranks");
}

void SearchWithCancelledRun(int ranks, const std::vector<std::vector<JobBucket>>& jobs,
                            const std::vector<Split>& splits, int64_t stride, Asking asking,
                            const char* what) {
  SearchTotals totals;
  ForEachJob(ranks, jobs, splits, stride, [&](Job job) {
    for (job.cancelled_run = 0; job.cancelled_run < job.runs(); ++job.cancelled_run) {
      if (totals.LeavesOut()) continue;
      totals.Add(job, Search<Engine>(job, asking));
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
  totals.Print(what);
}

TEST(EveryOrderOfCancelling, AmongThreeRanksSampled) {
  SearchWithCancelledRun(3, AllJobs(3, AllKindsAmongThree(), 3), SplitsOfThree(), 1511,
                         Asking::kAtOnce, "a cancelled run among three ranks");
}

TEST(EveryOrderOfCancelling, BetweenTwoRanks) {
  SearchWithCancelledRun(2, AllJobs(2, AllKindsBetweenTwo(), 4), SplitsOfFour(), 433,
                         Asking::kAnyTime, "a cancelled run between two ranks, asked at any time");
}

// A job with one slot per rank, in which two ranks meet in two runs of different urgency.
Job TwoRunsBetweenTwoRanks() {
  const EngineOptions options{.max_in_flight = 2, .slots = 1, .look_ahead = 4};
  return WithRuns(WithChannels(2, options, {Pair(0, 1), Pair(0, 1)}), {0, 1}, {1, 0});
}

// The control. Rank 0 feeds the urgent second run first and rank 1 the first run: each then holds
// its only slot for a bucket that the other has no slot for.
TEST(WithoutAnnouncements, TwoRunsGetStuck) {
  const Job job = TwoRunsBetweenTwoRanks();
  const SearchResult unannounced = Search<UnannouncedGate>(job, Asking::kAtOnce);
  EXPECT_EQ(unannounced.broken, "");
  EXPECT_GT(unannounced.stuck, 0);
  EXPECT_THAT(unannounced.trace, ::testing::HasSubstr("start"));
  EXPECT_EQ(Search<Engine>(job, Asking::kAtOnce).stuck, 0);
}

// The same gate without announcements in a single run, where it is no worse than the engine: it is
// the announcements that are missed in the test above.
TEST(WithoutAnnouncements, OneRunDoesNot) {
  const EngineOptions options{.max_in_flight = 2, .slots = 1, .look_ahead = 4};
  for (const std::vector<JobBucket>& buckets : AllJobs(3, AllKindsAmongThree(), 3)) {
    const Job job = WithChannels(3, options, buckets);
    const SearchResult result = Search<UnannouncedGate>(job, Asking::kAtOnce);
    ASSERT_EQ(result.broken, "") << job.ToString() << result.trace;
    ASSERT_EQ(result.stuck, 0) << job.ToString() << result.trace;
  }
}

}  // namespace
}  // namespace sluice::deadlock
