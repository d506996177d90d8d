// One run whose heap allocations are counted. For programs that link heap_bytes.cc.
#ifndef SLUICE_TESTS_SESSION_ALLOCATION_ROUND_H_
#define SLUICE_TESTS_SESSION_ALLOCATION_ROUND_H_

#include <cstdint>

#include "gtest/gtest.h"
#include "session/heap_bytes.h"
#include "session/job.h"

namespace sluice::session_test {

// Runs `bound` with the values of `round`, counted from 1. From the third round on nothing may be
// allocated, but where ranks tell each other how far they are: every kMaxRunsInFlight runs.
inline void RunCountingAllocations(Session* session, Bound* bound, uint64_t round) {
  bound->memory.Prepare(round);
  const int64_t before = AllocationCount();
  const auto run = session->Start(bound->transfer, bound->memory.src(), bound->memory.dst());
  ASSERT_TRUE(run.ok());
  const absl::Status status = run->Wait();
  const int64_t allocated = AllocationCount() - before;
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(bound->memory.Check(round), "");
  if (round >= 3 && run->number() % Session::kMaxRunsInFlight > 2) {
    EXPECT_EQ(allocated, 0) << "round " << round;
  }
  // The counter counts: the first run compares, which takes memory.
  if (round == 1) {
    EXPECT_GT(allocated, 0);
  }
}

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_ALLOCATION_ROUND_H_
