// Once a transfer runs, runs allocate nothing.
#include "gtest/gtest.h"
#include "session/allocation_count.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

TEST(AllocationTest, SteadyStateAllocatesNothing) {
  RunRanks(5, [](Rank& self) {
    SessionOptions options;
    options.bucket_bytes = 1000;
    options.budget_buckets = 3;
    const auto session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    Bound bounds[] = {CompileBound(session.get(), AllToAll(5, 3000), 1),
                      CompileBound(session.get(), Ring(5, 8), 2)};
    for (uint64_t round = 1; round <= 10; ++round) {
      for (Bound& bound : bounds) {
        ASSERT_NE(bound.transfer, nullptr);
        bound.memory.Prepare(round);
        const int64_t before = AllocationCount();
        const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst());
        ASSERT_TRUE(run.ok());
        const absl::Status status = session->Wait(*run);
        const int64_t allocated = AllocationCount() - before;
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(bound.memory.Check(round), "");
        if (round >= 3) {
          EXPECT_EQ(allocated, 0) << "round " << round;
        }
        // The counter counts: the first run compares, which takes memory.
        if (round == 1) {
          EXPECT_GT(allocated, 0);
        }
      }
    }
    EXPECT_GT(session->counters().buckets_finished, 10 * 100);
  });
}

}  // namespace
}  // namespace sluice::session_test
