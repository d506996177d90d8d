// Two sessions in one process, on communicators that overlap: one over all ranks, one over each
// half. Their runs are in flight together and do not mix; one that fails leaves the other alone.
#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "patient_fabric.h"
#include "session/job.h"
#include "session_mpi_rank.h"

namespace sluice::session_test {
namespace {

using testing::HasSubstr;

class TwoSessionsMpiTest : public testing::Test {
 protected:
  void SetUp() override {
    // Ranks count backwards in the halves, so hardly one is what it is in the world.
    MPI_Comm_split(MPI_COMM_WORLD, rank_ % 2, -rank_, &half_comm_);
    world_rank_ = MpiRank(MPI_COMM_WORLD);
    half_rank_ = MpiRank(half_comm_);
    SessionOptions options;
    options.bucket_bytes = 64 << 10;  // past the eager limit
    options.budget_buckets = 2;
    world_ = OpenSession(world_rank_, options);
    options.budget_buckets = 3;
    options.timeout = absl::Minutes(2);
    half_ = OpenSession(half_rank_, options);
    on_world_ = MakeBound(world_.get(), AllToAll(world_rank_.size, 200 << 10));
    on_half_ = MakeBound(half_.get(), AllToAll(half_rank_.size, 300 << 10));
  }
  void TearDown() override {
    world_.reset();
    half_.reset();
    MPI_Comm_free(&half_comm_);
  }

  // Never freed: operations on its memory may stay under way after a failure.
  static Bound* MakeBound(Session* session, const TransferSpec& spec) {
    return new Bound(CompileBound(session, spec));
  }

  const int rank_ = WorldRank();
  MPI_Comm half_comm_ = MPI_COMM_NULL;
  Rank world_rank_;
  Rank half_rank_;
  std::unique_ptr<Session> world_;
  std::unique_ptr<Session> half_;
  Bound* on_world_ = nullptr;
  Bound* on_half_ = nullptr;
};

TEST_F(TwoSessionsMpiTest, RunsAreInFlightTogether) {
  for (uint64_t round = 1; round <= 6; ++round) {
    // Ranks begin with different sessions, and finish whichever comes first.
    sluice::Run world_run, half_run;
    if ((static_cast<uint64_t>(rank_) / 2 + round) % 2 == 0) {
      world_run = StartRun(world_.get(), on_world_, round);
      half_run = StartRun(half_.get(), on_half_, round + 100);
    } else {
      half_run = StartRun(half_.get(), on_half_, round + 100);
      world_run = StartRun(world_.get(), on_world_, round);
    }
    while (!world_run.IsDone() || !half_run.IsDone()) {
      ASSERT_TRUE(world_->Poll().ok());
      ASSERT_TRUE(half_->Poll().ok());
    }
    EXPECT_TRUE(world_run.Wait().ok());
    EXPECT_TRUE(half_run.Wait().ok());
    EXPECT_EQ(on_world_->memory.Check(round), "") << "round " << round;
    EXPECT_EQ(on_half_->memory.Check(round + 100), "") << "round " << round;
  }
  EXPECT_TRUE(half_->Close().ok());
  RunOnce(world_.get(), on_world_, 7);
  EXPECT_TRUE(world_->Close().ok());
}

TEST_F(TwoSessionsMpiTest, AFailureOfOneLeavesTheOtherAlone) {
  RunOnce(half_.get(), on_half_, 1);
  RunOnce(world_.get(), on_world_, 1);
  const auto world_run = StartRun(world_.get(), on_world_, 2);
  // The last rank of the half of the even ranks gives no memory: that half ends, the other goes on.
  absl::Status status;
  if (rank_ == 0) {
    status = half_->Start(on_half_->transfer, {}, {}).status();
  } else {
    const auto half_run = StartRun(half_.get(), on_half_, 2);
    while (!half_run.IsDone()) {
      static_cast<void>(half_->Poll());
      ASSERT_TRUE(world_->Poll().ok());
    }
    status = half_run.Wait();
  }
  if (rank_ % 2 == 0) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    if (rank_ != 0) {
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("rank " + std::to_string(half_rank_.size - 1) + " failed"));
    }
  } else {
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(on_half_->memory.Check(2), "");
  }
  ASSERT_TRUE(world_run.Wait().ok());
  EXPECT_EQ(on_world_->memory.Check(2), "");
  for (uint64_t round = 3; round <= 5; ++round) RunOnce(world_.get(), on_world_, round);
  EXPECT_TRUE(world_->Close().ok());
}

}  // namespace
}  // namespace sluice::session_test
