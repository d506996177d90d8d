// Checkpoints saved from and loaded into memory of fake GPUs, every byte verified.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_dir.h"
#include "cuda/fake_world.h"
#include "fakes/fake_cuda.h"
#include "gmock/gmock.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "sluice/checkpoint.h"

namespace sluice::session_test {
namespace {

using checkpoint_test::CheckpointDir;
using checkpoint_test::kRound;
using checkpoint_test::RandomTensors;
using checkpoint_test::RankTensors;

using CheckpointBody = std::function<void(const Rank& self, Session* session)>;

// A session on each rank, with a GPU of its own.
void WithGpuSessions(int ranks, FakeTransport transport, const CheckpointBody& body) {
  RunRanksOnFakeGpus(ranks, ranks, transport, [&](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    ASSERT_NE(self.accelerator, nullptr);
    body(self, session.get());
    self.meet();
    EXPECT_TRUE(session->Close().ok());
  });
}

CheckpointOptions RandomOptions(oracle::Dice* dice) {
  CheckpointOptions options;
  options.piece_bytes = dice->Pick<int64_t>({64, 500, 4096, 1 << 20});
  options.budget_bytes = int64_t{4} << 20;
  options.slots = dice->Pick<absl::optional<int64_t>>({absl::nullopt, 1, 2, 7});
  return options;
}

class CudaCheckpointTest : public testing::TestWithParam<FakeTransport> {};

TEST_P(CudaCheckpointTest, WhatIsSavedFromGpusLoadsIntoOthers) {
  for (const uint64_t seed : oracle::Seeds(16)) {
    oracle::Dice dice(seed + 700);
    const int save_ranks = static_cast<int>(dice.Between(1, 4));
    const int load_ranks = static_cast<int>(dice.Between(1, 4));
    const std::vector<TensorTransfer> tensors = RandomTensors(seed, save_ranks, load_ranks);
    const CheckpointDir dir;
    const CheckpointOptions saving = RandomOptions(&dice);
    WithGpuSessions(save_ranks, GetParam(), [&](const Rank& self, Session* session) {
      const RankTensors mine(tensors, Side::kSource, self.rank, seed, self.accelerator);
      const auto saved = SaveCheckpoint(session, dir.path(), mine.tensors, saving);
      ASSERT_TRUE(saved.ok()) << saved.status();
      mine.ExpectHolds(kRound);
    });
    const CheckpointOptions loading = RandomOptions(&dice);
    WithGpuSessions(load_ranks, GetParam(), [&](const Rank& self, Session* session) {
      const RankTensors mine(tensors, Side::kDestination, self.rank, seed, self.accelerator);
      const auto loaded = LoadCheckpoint(session, dir.uri(), mine.tensors, loading);
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      mine.ExpectHolds(kRound);
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Fakes, CudaCheckpointTest, FakeTransports(), NameOfParam);

// Copies that come late, on slow streams, and few slots: no slot may be used again too early.
TEST(CudaCheckpointOrderTest, SlowStreams) {
  FakeCudaConfigure({.delay_us = 100});
  const std::vector<TensorTransfer> tensors = RandomTensors(5, 2, 2);
  const CheckpointDir dir;
  const CheckpointOptions options = {.slots = 2, .piece_bytes = 4096};
  WithGpuSessions(2, FakeTransport::kMessages, [&](const Rank& self, Session* session) {
    const RankTensors from(tensors, Side::kSource, self.rank, 1, self.accelerator);
    const auto saved = SaveCheckpoint(session, dir.path(), from.tensors, options);
    ASSERT_TRUE(saved.ok()) << saved.status();
    const RankTensors into(tensors, Side::kDestination, self.rank, 1, self.accelerator);
    const auto loaded = LoadCheckpoint(session, dir.uri(), into.tensors, options);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    into.ExpectHolds(kRound);
  });
  FakeCudaConfigure(FakeCudaConfig());
}

// Rank 0's tensors alone say that they are on a GPU.
TEST(CudaCheckpointInputTest, TakesAnAccelerator) {
  const std::vector<TensorTransfer> tensors = RandomTensors(3, 2, 2);
  const CheckpointDir empty;
  const CheckpointDir dir;
  dir.Write(tensors, 1, false);
  const auto names_the_accelerator = [](int rank, const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(testing::HasSubstr("tensor 'layers."),
                                                     testing::HasSubstr("without an accelerator")))
        << "rank " << rank;
  };
  checkpoint_test::WithSessions(2, [&](int rank, Session* session) {
    RankTensors from(tensors, Side::kSource, rank, 1);
    RankTensors into(tensors, Side::kDestination, rank, 1);
    for (RankTensors* const side : {&from, &into}) {
      if (rank != 0) continue;
      for (CheckpointTensor& tensor : side->tensors) tensor.view.device = DeviceKind::kCuda;
    }
    names_the_accelerator(rank, SaveCheckpoint(session, empty.path(), from.tensors, {}).status());
    names_the_accelerator(rank, LoadCheckpoint(session, dir.uri(), into.tensors, {}).status());
    into.ExpectPoisoned(kRound);
  });
  EXPECT_THAT(empty.Names(), testing::IsEmpty());
}

}  // namespace
}  // namespace sluice::session_test
