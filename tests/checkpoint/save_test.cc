// Checkpoints that are saved: loaded again elsewhere, element by element; failures leave nothing.
#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "checkpoint/checkpoint_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/make_layout.h"
#include "oracle/random_layout.h"
#include "sluice/session.h"

namespace sluice {
namespace {

using checkpoint_test::CheckpointDir;
using checkpoint_test::ErrorOnAll;
using checkpoint_test::FileBytes;
using checkpoint_test::kRound;
using checkpoint_test::PlainTensors;
using checkpoint_test::RandomBoxTensors;
using checkpoint_test::RandomTensors;
using checkpoint_test::RankTensors;
using checkpoint_test::WithSessions;
using session_test::Side;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

void Save(const std::vector<TensorTransfer>& tensors, int ranks, uint64_t seed,
          const std::string& directory, const CheckpointOptions& options,
          bool progress_thread = false) {
  std::atomic<int64_t> written{0};
  WithSessions(
      ranks,
      [&](int rank, Session* session) {
        RankTensors mine(tensors, Side::kSource, rank, seed);
        const auto stats = SaveCheckpoint(session, directory, mine.tensors, options).value();
        EXPECT_LE(stats.budget_bytes_peak, options.budget_bytes);
        written += stats.file_bytes;
        mine.ExpectHolds(kRound);
      },
      progress_thread);
  EXPECT_EQ(written, FileBytes(tensors));
}

// The bytes that all ranks have read.
int64_t Load(const std::vector<TensorTransfer>& tensors, int ranks, uint64_t seed,
             const CheckpointDir& dir, const CheckpointOptions& options,
             bool progress_thread = false) {
  std::atomic<int64_t> bytes_read{0};
  WithSessions(
      ranks,
      [&](int rank, Session* session) {
        RankTensors mine(tensors, Side::kDestination, rank, seed);
        const auto stats = LoadCheckpoint(session, dir.uri(), mine.tensors, options).value();
        EXPECT_LE(stats.budget_bytes_peak, options.budget_bytes);
        mine.ExpectHolds(kRound);
        bytes_read += stats.bytes_read;
      },
      progress_thread);
  return bytes_read;
}

using MakeTensors = std::vector<TensorTransfer> (*)(uint64_t seed, int save_ranks, int load_ranks);

// `all_is_needed`: by the ranks that load.
void SaveAndLoadRandomTensors(MakeTensors make, bool all_is_needed) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    oracle::Dice dice(seed + 900);
    const int save_ranks = static_cast<int>(dice.Between(1, 8));
    const int load_ranks = static_cast<int>(dice.Between(1, 8));
    const std::vector<TensorTransfer> tensors = make(seed, save_ranks, load_ranks);
    const CheckpointDir dir;
    CheckpointOptions options;
    options.piece_bytes = dice.Pick<int64_t>({64, 500, 4096, 1 << 20});
    options.budget_bytes = int64_t{4} << 20;
    options.slots = dice.Pick<absl::optional<int64_t>>({absl::nullopt, 1, 2, 7});
    options.shard_bytes_max = dice.Pick<int64_t>({1, 5000, 1 << 30});
    Save(tensors, save_ranks, seed, dir.path(), options, dice.Chance(20));
    const int64_t read = Load(tensors, load_ranks, seed, dir, options, dice.Chance(20));
    EXPECT_LE(read, FileBytes(tensors)) << "nothing is read twice";
    if (all_is_needed) {
      EXPECT_EQ(read, FileBytes(tensors));
    }
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(SaveCheckpointTest, WhatIsSavedFromOneLayoutLoadsIntoAnother) {
  SaveAndLoadRandomTensors(
      [](uint64_t seed, int save_ranks, int load_ranks) {
        return RandomTensors(seed, save_ranks, load_ranks);
      },
      true);
}

TEST(SaveCheckpointTest, RandomBoxesAreSavedAndLoaded) {
  SaveAndLoadRandomTensors(RandomBoxTensors, false);
}

// Without room for data to lie in its page as in the file, writes go through the page cache.
TEST(SaveCheckpointTest, ABudgetOfOnePieceIsEnough) {
  const Layout alone = oracle::MakeLayout({1}, {0}, "R");
  const std::vector<TensorTransfer> tensors = {
      {"a", {3, 7}, DType::kF32, DType::kF32, alone, alone},
      {"b", {64, 256}, DType::kF32, DType::kF32, alone, alone}};
  const CheckpointDir dir;
  CheckpointOptions options;
  options.piece_bytes = options.budget_bytes = 8192;
  Save(tensors, 1, 1, dir.path(), options);
  options.budget_bytes = 1 << 20;
  Load(tensors, 1, 1, dir, options);
}

TEST(SaveCheckpointTest, NamesAndWhatTheyReplace) {
  const std::vector<TensorTransfer> tensors = PlainTensors(3, "S(1)");
  const CheckpointDir dir;
  std::ofstream(dir.path() + "/config.json") << "{}";
  CheckpointOptions options;
  options.shard_bytes_max = int64_t{64} * 32 * 4;
  Save(tensors, 3, 1, dir.path(), options);
  EXPECT_THAT(dir.Names(),
              ElementsAre("config.json", "model-00001-of-00003.safetensors",
                          "model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors",
                          "model.safetensors.index.json"));
  options.shard_bytes_max *= 2;
  Save(tensors, 3, 1, dir.path(), options);
  EXPECT_THAT(dir.Names(),
              ElementsAre("config.json", "model-00001-of-00002.safetensors",
                          "model-00002-of-00002.safetensors", "model.safetensors.index.json"));
  EXPECT_EQ(Load(tensors, 3, 1, dir, options), FileBytes(tensors));
  options.shard_bytes_max *= 2;
  Save(tensors, 3, 1, dir.path(), options);
  EXPECT_THAT(dir.Names(), ElementsAre("config.json", "model.safetensors"));
  EXPECT_EQ(Load(tensors, 3, 1, dir, options), FileBytes(tensors));
}

TEST(SaveCheckpointTest, TextsAreThereForAllRanks) {
  const std::vector<TensorTransfer> tensors = PlainTensors(3, "S(1)");
  for (const int64_t shard_bytes_max : {64 * 32 * 4, 1 << 30}) {
    const CheckpointDir dir;
    CheckpointOptions options;
    options.shard_bytes_max = shard_bytes_max;
    options.metadata = {{"epoch", "3"}, {"note", "\"\u00e9\""}};
    Save(tensors, 3, 1, dir.path(), options);
    WithSessions(3, [&](int, Session* session) {
      const CheckpointInfo info = ReadCheckpointInfo(session, dir.uri()).value();
      EXPECT_THAT(info.tensors, ElementsAre("a", "b", "c"));
      for (const auto& text : options.metadata) EXPECT_THAT(info.metadata, Contains(text));
      EXPECT_EQ(ReadCheckpointInfo(session, dir.uri() + "/none").status().code(),
                absl::StatusCode::kNotFound);
    });
    EXPECT_EQ(Load(tensors, 3, 1, dir, options), FileBytes(tensors));
  }
}

TEST(SaveCheckpointTest, RanksGiveTheSameTexts) {
  const std::vector<TensorTransfer> tensors = PlainTensors(2, "S(1)");
  const CheckpointDir dir;
  WithSessions(2, [&](int rank, Session* session) {
    RankTensors mine(tensors, Side::kSource, rank, 1);
    CheckpointOptions options;
    options.metadata = {{"rank", std::to_string(rank)}};
    const auto saved = SaveCheckpoint(session, dir.path(), mine.tensors, options);
    EXPECT_THAT(saved.status().message(), HasSubstr("disagree on"));
    EXPECT_THAT(saved.status().message(), HasSubstr("metadata"));
  });
  EXPECT_THAT(dir.Names(), ElementsAre());
}

TEST(SaveCheckpointTest, MakesTheDirectoryAndCasts) {
  std::vector<TensorTransfer> tensors = PlainTensors(2, "S(1)");
  const CheckpointDir dir;
  const std::string inner = dir.path() + "/step-100";
  WithSessions(2, [&](int rank, Session* session) {
    RankTensors mine(tensors, Side::kSource, rank, 1);
    for (CheckpointTensor& tensor : mine.tensors) tensor.file_dtype = DType::kBF16;
    ASSERT_TRUE(SaveCheckpoint(session, inner, mine.tensors, {}).ok());
  });
  for (TensorTransfer& tensor : tensors) tensor.dst_dtype = DType::kBF16;
  WithSessions(2, [&](int rank, Session* session) {
    RankTensors mine(tensors, Side::kDestination, rank, 1);
    ASSERT_TRUE(LoadCheckpoint(session, "file:" + inner, mine.tensors, {}).ok());
    mine.ExpectHolds(kRound);
  });
}

absl::Status SaveBadly(const std::vector<TensorTransfer>& tensors, int ranks,
                       const std::string& directory, const CheckpointOptions& options) {
  return ErrorOnAll(ranks, [&](int rank, Session* session) {
    RankTensors mine(tensors, Side::kSource, rank, 1);
    return SaveCheckpoint(session, directory, mine.tensors, options).status();
  });
}

TEST(SaveCheckpointTest, FailuresLeaveTheDirectoryAsItWas) {
  const std::vector<TensorTransfer> tensors = PlainTensors(3, "S(1)");
  const CheckpointDir dir;
  std::ofstream(dir.path() + "/model.safetensors") << "older";
  CheckpointOptions options;
  options.budget_bytes = 1000;
  EXPECT_TRUE(absl::IsInvalidArgument(SaveBadly(tensors, 3, dir.path(), options)));
  EXPECT_TRUE(absl::IsInvalidArgument(SaveBadly(tensors, 3, dir.path() + "/new", options)));
  EXPECT_TRUE(absl::IsNotFound(SaveBadly(tensors, 3, dir.path() + "/not/there", {})));
  std::vector<TensorTransfer> partial = tensors;
  partial[1].src.placements[0] = Placement::Partial(ReduceOp::kSum);
  EXPECT_TRUE(absl::IsInvalidArgument(SaveBadly(partial, 3, dir.path(), {})));
  EXPECT_THAT(dir.Names(), ElementsAre("model.safetensors"));
  EXPECT_EQ(FileText(dir.path() + "/model.safetensors"), "older");
}

}  // namespace
}  // namespace sluice
