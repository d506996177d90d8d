// The simulator beside real sessions over loopback: the same transfers, the same number of buckets,
// the same limits; and memory is as it should be.
#include <vector>

#include "gtest/gtest.h"
#include "session/job.h"
#include "sim/simulation.h"

namespace sluice::sim {
namespace {

using session_test::Bound;
using session_test::CompileBound;
using session_test::OpenSession;
using session_test::RunRanks;

struct Seen {
  std::vector<SessionCounters> counters;
  std::vector<TransferStats> stats;
};

// Memory is compared with what it should be on the way.
Seen RunReally(const TransferSpec& spec, int ranks, const SessionOptions& options) {
  Seen seen;
  seen.counters.resize(static_cast<size_t>(ranks));
  seen.stats.resize(static_cast<size_t>(ranks));
  RunRanks(ranks, [&](session_test::Rank& self) {
    const std::unique_ptr<Session> session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), spec);
    ASSERT_NE(bound.transfer, nullptr);
    session_test::RunOnce(session.get(), &bound, 0);
    const size_t rank = static_cast<size_t>(self.rank);
    seen.counters[rank] = session->counters();
    seen.stats[rank] = bound.transfer->stats();
  });
  return seen;
}

class RealSessionTest : public testing::TestWithParam<int> {};

TEST_P(RealSessionTest, DoesWhatIsSimulated) {
  const int ranks = GetParam();
  const TransferSpec specs[] = {session_test::AllToAll(ranks, 4096), session_test::Ring(ranks, 8),
                                session_test::OverlappingMeshes(ranks)};
  for (const TransferSpec& spec : specs) {
    for (const int64_t budget : {0, 1, 3}) {
      SessionOptions options;
      options.bucket_bytes = 1024;
      options.max_in_flight = 2;
      options.budget_buckets = budget > 0 ? budget : kNoLimit;
      options.budget_bytes = kNoLimit;
      const Seen seen = RunReally(spec, ranks, options);
      Job job;
      job.spec = spec;
      job.ranks = ranks;
      job.node_of_rank.assign(static_cast<size_t>(ranks), 0);  // threads of one process
      job.bucket_bytes = *options.bucket_bytes;
      job.max_in_flight = *options.max_in_flight;
      job.slots = budget;
      const JobPlans plans = JobPlans::Make(job).value();
      SimulationOptions simulation;
      simulation.budget_buckets = budget;
      simulation.max_in_flight = *options.max_in_flight;
      const SimulationOutcome outcome = Simulate(plans, simulation).value();
      int64_t finished = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const size_t i = static_cast<size_t>(rank);
        finished += seen.counters[i].buckets_finished;
        // How many are held at once depends on who is quick, but for one at a time.
        EXPECT_LE(seen.counters[i].buckets_peak, outcome.ranks[i].channels * 2);
        if (budget == 1) {
          EXPECT_EQ(seen.counters[i].buckets_peak, outcome.ranks[i].peak_buckets);
        }
        if (budget > 0) {
          EXPECT_LE(outcome.ranks[i].peak_buckets, budget);
        }
        EXPECT_EQ(seen.stats[i].peak_buckets_without_budget,
                  plans.plan(rank).peak_buckets_without_budget);
      }
      EXPECT_EQ(finished, outcome.finished_parts);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, RealSessionTest, testing::Values(2, 3, 5),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace sluice::sim
