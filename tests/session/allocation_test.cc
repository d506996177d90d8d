// Once a transfer runs, runs allocate nothing.
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "session/allocation_round.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

TEST(AllocationTest, SteadyStateAllocatesNothing) {
  RunRanks(5, [](Rank& self) {
    SessionOptions options;
    options.bucket_bytes = 1000;
    options.budget_buckets = 3;
    options.timeout = absl::Minutes(10);  // nobody asks what is the matter, which takes memory
    const auto session = OpenSession(self, options);
    Bound bounds[] = {CompileBound(session.get(), AllToAll(5, 3000), 1),
                      CompileBound(session.get(), Ring(5, 8), 2)};
    for (uint64_t round = 1; round <= 10; ++round) {
      for (Bound& bound : bounds) {
        RunCountingAllocations(session.get(), &bound, round);
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_GT(session->counters().buckets_finished, 10 * 100);
  });
}

}  // namespace
}  // namespace sluice::session_test
