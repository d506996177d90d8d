// Sessions over MPI: the jobs of tests/session, between processes.
#include <mpi.h>

#include <cstdint>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "patient_fabric.h"
#include "session/allocation_round.h"
#include "session/job.h"
#include "session/late_run.h"
#include "session/launch.h"
#include "session_mpi_rank.h"

namespace sluice::session_test {
namespace {

Rank World() { return MpiRank(MPI_COMM_WORLD); }

TEST(SessionMpiTest, RandomTransfers) {
  RunRandomJobs(oracle::Thinned(WorldSize() <= 5 ? 30 : 10), 0, &RunJob);
}

TEST(SessionMpiTest, ManyRunsAtOnceAndSomeCancelled) {
  RunRandomJobs(oracle::Thinned(WorldSize() <= 5 ? 20 : 5), 30,
                [](Rank& self, const RandomJob& job, uint64_t seed) {
                  RunSchedule(self, job, {.seed = seed, .cancel_percent = seed % 2 == 0 ? 0 : 40});
                });
}

TEST(SessionMpiTest, CancelsWithMemoryThatComesLateOrNever) {
  const int size = WorldSize();
  RunRandomJobs(oracle::Thinned(size <= 3 ? 12 : size <= 8 ? 4 : 1), 50, &RunCancelled);
}

// A rank whose messages have left, and which goes on for many runs before the others cancel.
TEST(SessionMpiTest, CancelAsksARankThatIsFarAhead) {
  Rank self = World();
  if (self.size < 2) return;  // nobody to be ahead of
  SessionOptions options;
  options.bucket_bytes = 4096;
  const auto session = OpenSession(self, options);
  TransferSpec spec = Ring(2, 1);
  spec.tensors[0].src = MakeLayout({1}, {0}, "R");
  spec.tensors[0].dst = MakeLayout({1}, {1}, "R");
  spec.tensors[0].shape = {100};
  Bound bound = CompileBound(session.get(), spec);
  RunOnce(session.get(), &bound, 1);
  bound.memory.Prepare(2);
  StartOptions late;
  late.late_destinations = true;
  const auto run =
      session->Start(bound.transfer, bound.memory.src(), std::vector<TensorView>(1), late).value();
  // So that rank 0 is ahead when the others cancel, which it need not be.
  const auto poll_for = [&](absl::Duration time) {
    const auto begin = absl::Now();
    while (absl::Now() - begin < time) ASSERT_TRUE(session->Poll().ok());
  };
  poll_for(absl::Milliseconds(self.rank == 0 ? 100 : 500));
  EXPECT_TRUE(run.Cancel().ok());
  for (uint64_t round = 3; round <= 100; ++round) {
    RunOnce(session.get(), &bound, round);
    if (HasFatalFailure()) return;
  }
  const absl::Status status = run.Wait();
  EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
  EXPECT_TRUE(session->Close().ok());
}

// Past the eager limit, several buckets of a channel at once, the last one smaller.
TEST(SessionMpiTest, ReductionsAndBroadcasts) {
  const int size = WorldSize();
  TransferSpec spec = OverlappingMeshes(size);
  for (TensorTransfer& tensor : spec.tensors) {
    tensor.src.placements = {Placement::Partial(ReduceOp::kSum)};
    tensor.dst_dtype = DType::kBF16;
  }
  spec.tensors[0].dst.placements = {Placement::Replicate()};
  for (const int64_t slots : {int64_t{1}, int64_t{4}, kNoLimit}) {
    Rank self = World();
    SessionOptions options;
    options.bucket_bytes = 50000;
    options.max_in_flight = 4;
    options.budget_buckets = slots;
    RunJob(self, {options, {spec}}, 3);
    ASSERT_FALSE(HasFailure()) << slots << " slots";
  }
}

TEST(SessionMpiTest, MemoryMayComeLate) {
  RunRandomJobs(oracle::Thinned(WorldSize() <= 5 ? 20 : 5), 70, &RunLateJob);
}

TEST(SessionMpiTest, OneSlotIsEnough) {
  const int size = WorldSize();
  for (const TransferSpec& spec :
       {Ring(size, 24), AllToAll(size, 80 << 10), OverlappingMeshes(size)}) {
    Rank self = World();
    RunThroughOneSlot(self, spec);
    ASSERT_FALSE(HasFailure());
  }
}

TEST(SessionMpiTest, SteadyStateAllocatesNothing) {
  Rank self = World();
  SessionOptions options;
  options.bucket_bytes = 8192;
  options.budget_buckets = 3;
  options.timeout = absl::Minutes(10);  // nobody asks what is the matter, which takes memory
  const auto session = OpenSession(self, options);
  Bound bound = CompileBound(session.get(), AllToAll(self.size, 40000), 1);
  for (uint64_t round = 1; round <= 10; ++round) {
    RunCountingAllocations(session.get(), &bound, round);
    if (HasFatalFailure()) return;
  }
  EXPECT_TRUE(session->Close().ok());
}

}  // namespace
}  // namespace sluice::session_test
