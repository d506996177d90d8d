// Sessions over MPI: the jobs of tests/session, between processes.
#include <mpi.h>

#include <cstdint>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "session/allocation_round.h"
#include "session/job.h"
#include "session/late_run.h"
#include "session/launch.h"
#include "session_mpi_rank.h"

namespace sluice::session_test {
namespace {

Rank World() { return MpiRank(MPI_COMM_WORLD); }

TEST(SessionMpiTest, RandomTransfers) {
  const int size = World().size;
  const auto seeds = static_cast<uint64_t>(oracle::Thinned(size <= 5 ? 30 : 10));
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Rank self = World();
    ASSERT_NE(self.fabric, nullptr);
    RunJob(self, MakeRandomJob(seed * 100 + static_cast<uint64_t>(size), size), seed);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(SessionMpiTest, ManyRunsAtOnceAndSomeCancelled) {
  const int size = World().size;
  const auto seeds = static_cast<uint64_t>(oracle::Thinned(size <= 5 ? 20 : 5));
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Rank self = World();
    ASSERT_NE(self.fabric, nullptr);
    const RandomJob job = MakeRandomJob(seed * 100 + static_cast<uint64_t>(size) + 30, size);
    const Schedule schedule{.seed = seed, .cancel_percent = seed % 2 == 0 ? 0 : 40};
    RunSchedule(self, job, schedule);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(SessionMpiTest, CancelsWithMemoryThatComesLateOrNever) {
  const int size = World().size;
  const auto seeds = static_cast<uint64_t>(oracle::Thinned(size <= 3 ? 12 : size <= 8 ? 4 : 1));
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Rank self = World();
    ASSERT_NE(self.fabric, nullptr);
    RunCancelled(self, MakeRandomJob(seed * 100 + static_cast<uint64_t>(size) + 50, size), seed);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

// A rank whose messages have left, and which goes on for many runs before the others cancel.
TEST(SessionMpiTest, CancelAsksARankThatIsFarAhead) {
  Rank self = World();
  ASSERT_NE(self.fabric, nullptr);
  if (self.size < 2) return;  // nobody to be ahead of
  SessionOptions options;
  options.bucket_bytes = 4096;
  const auto session = OpenSession(self, options);
  ASSERT_NE(session, nullptr);
  TransferSpec spec = Ring(2, 1);
  spec.tensors[0].src = MakeLayout({1}, {0}, "R");
  spec.tensors[0].dst = MakeLayout({1}, {1}, "R");
  spec.tensors[0].shape = {100};
  Bound bound = CompileBound(session.get(), spec);
  ASSERT_NE(bound.transfer, nullptr);
  RunOnce(session.get(), &bound, 1);
  bound.memory.Prepare(2);
  StartOptions late;
  late.late_destinations = true;
  const auto run =
      session->Start(bound.transfer, bound.memory.src(), std::vector<TensorView>(1), late);
  ASSERT_TRUE(run.ok()) << run.status();
  // So that rank 0 is ahead when the others cancel, which it need not be.
  const auto poll_for = [&](absl::Duration time) {
    const auto begin = absl::Now();
    while (absl::Now() - begin < time) ASSERT_TRUE(session->Poll().ok());
  };
  poll_for(absl::Milliseconds(self.rank == 0 ? 100 : 500));
  EXPECT_TRUE(run->Cancel().ok());
  for (uint64_t round = 3; round <= 100; ++round) {
    RunOnce(session.get(), &bound, round);
    if (HasFatalFailure()) return;
  }
  const absl::Status status = run->Wait();
  EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
  EXPECT_TRUE(session->Close().ok());
}

// Past the eager limit, several buckets of a channel at once, the last one smaller.
TEST(SessionMpiTest, ReductionsAndBroadcasts) {
  const int size = World().size;
  TransferSpec spec = OverlappingMeshes(size);
  for (TensorTransfer& tensor : spec.tensors) {
    tensor.src.placements = {Placement::Partial(ReduceOp::kSum)};
    tensor.dst_dtype = DType::kBF16;
  }
  spec.tensors[0].dst.placements = {Placement::Replicate()};
  for (const int64_t slots : {int64_t{1}, int64_t{4}, kNoLimit}) {
    Rank self = World();
    ASSERT_NE(self.fabric, nullptr);
    SessionOptions options;
    options.bucket_bytes = 50000;
    options.max_in_flight = 4;
    options.budget_buckets = slots;
    RunJob(self, {options, {spec}}, 3);
    ASSERT_FALSE(HasFailure()) << slots << " slots";
  }
}

TEST(SessionMpiTest, MemoryMayComeLate) {
  const int size = World().size;
  const auto seeds = static_cast<uint64_t>(oracle::Thinned(size <= 5 ? 20 : 5));
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Rank self = World();
    ASSERT_NE(self.fabric, nullptr);
    RunLateJob(self, MakeRandomJob(seed * 100 + static_cast<uint64_t>(size) + 70, size), seed);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(SessionMpiTest, OneSlotIsEnough) {
  const int size = World().size;
  for (const TransferSpec& spec :
       {Ring(size, 24), AllToAll(size, 80 << 10), OverlappingMeshes(size)}) {
    Rank self = World();
    ASSERT_NE(self.fabric, nullptr);
    RunThroughOneSlot(self, spec);
    ASSERT_FALSE(HasFailure());
  }
}

TEST(SessionMpiTest, TwoSessionsAtOnce) {
  Rank first = World(), second = World();
  ASSERT_NE(first.fabric, nullptr);
  ASSERT_NE(second.fabric, nullptr);
  SessionOptions options;
  options.bucket_bytes = 4096;
  options.budget_buckets = 2;
  const auto a = OpenSession(first, options);
  const auto b = OpenSession(second, options);
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  Bound on_a = CompileBound(a.get(), AllToAll(first.size, 10000));
  Bound on_b = CompileBound(b.get(), Ring(first.size, 4));
  ASSERT_NE(on_a.transfer, nullptr);
  ASSERT_NE(on_b.transfer, nullptr);
  for (uint64_t round = 1; round <= 3; ++round) {
    RunOnce(a.get(), &on_a, round);
    RunOnce(b.get(), &on_b, round);
  }
  EXPECT_TRUE(b->Close().ok());
  RunOnce(a.get(), &on_a, 4);
  EXPECT_TRUE(a->Close().ok());
}

TEST(SessionMpiTest, SplitCommunicatorsWorkSideBySide) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // Ranks count backwards in the halves, so none is what it is in the world.
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  {
    Rank self = MpiRank(half);
    ASSERT_NE(self.fabric, nullptr);
    const uint64_t seed = 900 + static_cast<uint64_t>(rank % 2);
    RunJob(self, MakeRandomJob(seed, self.size), seed);
  }
  {
    Rank self = MpiRank(half);
    ASSERT_NE(self.fabric, nullptr);
    RunThroughOneSlot(self, OverlappingMeshes(self.size));
  }
  MPI_Comm_free(&half);
}

TEST(SessionMpiTest, SteadyStateAllocatesNothing) {
  Rank self = World();
  ASSERT_NE(self.fabric, nullptr);
  SessionOptions options;
  options.bucket_bytes = 8192;
  options.budget_buckets = 3;
  options.timeout = absl::Minutes(10);  // nobody asks what is the matter, which takes memory
  const auto session = OpenSession(self, options);
  ASSERT_NE(session, nullptr);
  Bound bound = CompileBound(session.get(), AllToAll(self.size, 40000), 1);
  ASSERT_NE(bound.transfer, nullptr);
  for (uint64_t round = 1; round <= 10; ++round) {
    RunCountingAllocations(session.get(), &bound, round);
    if (HasFatalFailure()) return;
  }
  EXPECT_TRUE(session->Close().ok());
}

}  // namespace
}  // namespace sluice::session_test
