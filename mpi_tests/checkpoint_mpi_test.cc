// Checkpoints of a job over MPI: saved from one layout, loaded into another, element by element.
#include <mpi.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_dir.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "session/job.h"
#include "session_mpi_rank.h"
#include "sluice/session.h"

namespace sluice {
namespace {

using checkpoint_test::CheckpointDir;
using checkpoint_test::kRound;
using checkpoint_test::RandomTensors;
using checkpoint_test::RankTensors;
using session_test::MpiRank;
using session_test::Rank;
using session_test::Side;

// Rank 0's directory, which all ranks see: they run on one host.
class SharedDir {
 public:
  explicit SharedDir(int rank) {
    if (rank == 0) own_.emplace();
    std::array<char, 256> path = {};
    if (rank == 0) std::strncpy(path.data(), own_->path().c_str(), path.size() - 1);
    MPI_Bcast(path.data(), static_cast<int>(path.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
    path_ = path.data();
  }
  const std::string& path() const { return path_; }

 private:
  std::optional<CheckpointDir> own_;
  std::string path_;
};

int64_t SumOver(int64_t mine) {
  int64_t sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

TEST(CheckpointMpiTest, SavedFromOneLayoutLoadedIntoAnother) {
  Rank self = MpiRank(MPI_COMM_WORLD);
  const auto session = session_test::OpenSession(self, {});
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    oracle::Dice dice(seed);
    const SharedDir dir(self.rank);
    const std::vector<TensorTransfer> tensors = RandomTensors(seed, self.size, self.size);
    CheckpointOptions options;
    options.piece_bytes = dice.Pick<int64_t>({300, 4096, 1 << 20});
    options.slots = dice.Pick<absl::optional<int64_t>>({absl::nullopt, 1, 3});
    options.shard_bytes_max = dice.Pick<int64_t>({4000, 1 << 30});
    const RankTensors saved(tensors, Side::kSource, self.rank, seed);
    const auto save = SaveCheckpoint(session.get(), dir.path(), saved.tensors, options).value();
    EXPECT_EQ(SumOver(save.file_bytes), checkpoint_test::FileBytes(tensors));
    const RankTensors loaded(tensors, Side::kDestination, self.rank, seed);
    const auto load =
        LoadCheckpoint(session.get(), "buffered:" + dir.path(), loaded.tensors, options).value();
    loaded.ExpectHolds(kRound);
    EXPECT_EQ(SumOver(load.bytes_read), checkpoint_test::FileBytes(tensors));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  EXPECT_TRUE(session->Close().ok());
}

TEST(CheckpointMpiTest, AMissingCheckpointIsAnErrorOnAllRanksAndTheSessionGoesOn) {
  Rank self = MpiRank(MPI_COMM_WORLD);
  const auto session = session_test::OpenSession(self, {});
  const SharedDir dir(self.rank);
  const std::vector<TensorTransfer> tensors = RandomTensors(3, self.size, self.size);
  const RankTensors mine(tensors, Side::kDestination, self.rank, 1);
  EXPECT_TRUE(absl::IsNotFound(
      LoadCheckpoint(session.get(), "file:" + dir.path(), mine.tensors, {}).status()));
  mine.ExpectPoisoned(kRound);
  EXPECT_TRUE(session->Close().ok());
}

}  // namespace
}  // namespace sluice
