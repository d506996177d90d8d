// Progress threads over MPI: with MPI_THREAD_MULTIPLE they serve ranks whose callers do other
// things, MPI calls among them; with less, every rank is told.
#include <mpi.h>

#include <cstdint>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/job.h"
#include "session/late_run.h"
#include "session/launch.h"
#include "session_mpi_rank.h"
#include "transport/deadline.h"

namespace sluice::session_test {
namespace {

using testing::HasSubstr;

bool IsMultiple() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

SessionOptions Threaded() {
  SessionOptions options;
  options.bucket_bytes = 64 << 10;  // past the eager limit
  options.budget_buckets = 3;
  options.progress_thread = true;
  return options;
}

class ProgressThreadMpiTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!IsMultiple()) GTEST_SKIP() << "MPI was not initialized with MPI_THREAD_MULTIPLE";
  }
};

TEST(ProgressThreadLevelTest, TooLowALevelIsAnErrorOnEveryRank) {
  if (IsMultiple()) GTEST_SKIP() << "MPI was initialized with MPI_THREAD_MULTIPLE";
  Rank self = MpiRank(MPI_COMM_WORLD);
  SessionOptions options = Threaded();
  options.progress_thread = self.rank == 1;
  const absl::Status status = Session::Create(std::move(self.fabric), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("progress_thread: MPI was initialized with MPI_THREAD_FUNNELED"));
  EXPECT_THAT(message, HasSubstr("need MPI_THREAD_MULTIPLE"));
  if (self.rank != 1) {
    EXPECT_THAT(message, HasSubstr("Create failed on rank 1"));
  }
}

TEST_F(ProgressThreadMpiTest, RunsFinishWhileNobodyCalls) {
  Rank self = MpiRank(MPI_COMM_WORLD);
  const auto session = OpenSession(self, Threaded());
  Bound bound = CompileBound(session.get(), AllToAll(self.size, 500 << 10));
  for (uint64_t round = 1; round <= 5; ++round) {
    const auto run = StartRun(session.get(), &bound, round);
    const Deadline deadline(absl::Seconds(100));
    while (!run.IsDone()) {
      ASSERT_FALSE(deadline.Passed()) << "the run does not end by itself";
      std::this_thread::yield();
    }
    EXPECT_EQ(bound.memory.Check(round), "") << "round " << round;
    EXPECT_TRUE(run.Wait().ok());
  }
  EXPECT_TRUE(session->Close().ok());
}

// Rank 0 stays within calls of its own, which say nothing to the session, until all others are
// done.
TEST_F(ProgressThreadMpiTest, ARankThatIsBusyWithMpiServesTheOthers) {
  Rank self = MpiRank(MPI_COMM_WORLD);
  SessionOptions options = Threaded();
  options.progress_thread = self.rank == 0;
  const auto session = OpenSession(self, options);
  Bound bound = CompileBound(session.get(), AllToAll(self.size, 500 << 10));
  for (uint64_t round = 1; round <= 5; ++round) {
    const auto run = StartRun(session.get(), &bound, round);
    if (self.rank != 0) {
      EXPECT_TRUE(run.Wait().ok());
    }
    int done = 1, all_done = 0;
    for (int i = 0; i < 50; ++i) {
      MPI_Allreduce(&done, &all_done, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
    EXPECT_TRUE(run.Wait().ok());
    EXPECT_EQ(bound.memory.Check(round), "") << "round " << round;
  }
  EXPECT_TRUE(session->Close().ok());
}

TEST_F(ProgressThreadMpiTest, ManyRunsAtOnceAndSomeCancelled) {
  RunRandomJobs(10, 30, [](Rank& self, RandomJob job, uint64_t seed) {
    job.options.progress_thread = true;
    RunSchedule(self, job, {.seed = seed, .cancel_percent = seed % 2 == 0 ? 0 : 40});
  });
}

TEST_F(ProgressThreadMpiTest, MemoryMayComeLate) {
  RunRandomJobs(10, 70, [](Rank& self, RandomJob job, uint64_t seed) {
    job.options.progress_thread = self.rank % 2 == 0;
    RunLateJob(self, job, seed);
  });
}

TEST_F(ProgressThreadMpiTest, TwoSessionsAtOnce) {
  Rank first = MpiRank(MPI_COMM_WORLD), second = MpiRank(MPI_COMM_WORLD);
  const auto a = OpenSession(first, Threaded());
  const auto b = OpenSession(second, Threaded());
  Bound on_a = CompileBound(a.get(), AllToAll(first.size, 300 << 10));
  Bound on_b = CompileBound(b.get(), AllToAll(first.size, 200 << 10));
  for (uint64_t round = 1; round <= 10; ++round) {
    const Flight flight = Launch(a.get(), on_a.transfer, round);
    RunOnce(b.get(), &on_b, round);
    Land(a.get(), flight);
  }
  EXPECT_TRUE(b->Close().ok());
  EXPECT_TRUE(a->Close().ok());
}

}  // namespace
}  // namespace sluice::session_test
