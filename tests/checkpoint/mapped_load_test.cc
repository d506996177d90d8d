// Checkpoints whose bytes go from a mapped file straight into tensors, several threads copying.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "checkpoint/checkpoint_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "oracle/make_layout.h"
#include "session/world.h"
#include "sluice/checkpoint.h"
#include "sluice/session.h"
#include "transport/loopback/loopback.h"

namespace sluice {
namespace {

using checkpoint_test::CheckpointDir;
using checkpoint_test::FileBytes;
using checkpoint_test::kRound;
using checkpoint_test::RandomBoxTensors;
using checkpoint_test::RandomTensors;
using checkpoint_test::RankTensors;
using checkpoint_test::WithSessions;
using oracle::MakeLayout;
using session_test::Side;

// Whole pieces, pieces that end with a tensor, rows in two directions, and a cast.
std::vector<TensorTransfer> LargeTensors(int ranks) {
  const Layout src = MakeLayout(1, "R");
  const Layout rows = MakeLayout(ranks, "S(0)");
  const Layout columns = MakeLayout(ranks, "S(1)");
  return {{"rows", {2048, 1031}, DType::kF32, DType::kF32, src, rows},
          {"columns", {1031, 2048}, DType::kBF16, DType::kBF16, src, columns},
          {"small", {7}, DType::kU8, DType::kU8, src, MakeLayout(ranks, "R")},
          {"cast", {1500, 1000}, DType::kBF16, DType::kF32, src, rows}};
}

TEST(MappedLoadTest, LargeTensorsArriveWhole) {
  for (const int ranks : {1, 3}) {
    const std::vector<TensorTransfer> tensors = LargeTensors(ranks);
    const CheckpointDir dir;
    dir.Write(tensors, 2, true);
    for (const char* scheme : {"mmap:", "buffered:", "file:"}) {
      for (const int64_t piece_bytes : {int64_t{8} << 20, int64_t{70'001}}) {
        CheckpointOptions options;
        options.piece_bytes = piece_bytes;
        options.budget_bytes = int64_t{24} << 20;
        WithSessions(ranks, [&](int rank, Session* session) {
          RankTensors mine(tensors, Side::kDestination, rank, 1);
          const auto stats =
              LoadCheckpoint(session, scheme + dir.path(), mine.tensors, options).value();
          mine.ExpectHolds(kRound);
          EXPECT_LE(stats.budget_bytes_peak, options.budget_bytes);
        });
        if (testing::Test::HasFailure()) {
          FAIL() << scheme << ", " << ranks << " ranks, pieces of " << piece_bytes;
        }
      }
    }
  }
}

void OnNodes(const std::vector<int>& nodes,
             const std::function<void(int rank, Session* session)>& body) {
  const auto run = [&](session_test::Rank& self) {
    const int rank = self.rank;
    auto session = Session::Create(std::move(self.fabric), SessionOptions()).value();
    body(rank, session.get());
    self.meet();
    EXPECT_TRUE(session->Close().ok());
  };
  session_test::RunRanksOn(MakeLoopbackFabrics(nodes), run, /*direct=*/false);
}

// Ranks of one node copy their parts by themselves. Yet each piece counts as read once.
TEST(MappedLoadTest, RanksOfOneNodeSendNothing) {
  constexpr int kRanks = 3;
  for (const uint64_t seed : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const std::vector<TensorTransfer> tensors = seed == 0  ? LargeTensors(kRanks)
                                                : seed < 4 ? RandomTensors(seed, 2, kRanks)
                                                           : RandomBoxTensors(seed, 2, kRanks);
    const CheckpointDir dir;
    dir.Write(tensors, 2, true);
    for (const char* scheme : {"mmap:", "buffered:"}) {
      std::atomic<int64_t> sent = 0;
      std::atomic<int64_t> read = 0;
      OnNodes({0, 0, 0}, [&](int rank, Session* session) {
        RankTensors mine(tensors, Side::kDestination, rank, seed);
        CheckpointOptions options;
        options.piece_bytes = 70'001;
        options.budget_bytes = int64_t{24} << 20;
        const auto stats =
            LoadCheckpoint(session, scheme + dir.path(), mine.tensors, options).value();
        mine.ExpectHolds(kRound);
        sent += stats.sent_bytes;
        read += stats.bytes_read;
      });
      EXPECT_EQ(sent == 0, scheme == std::string("mmap:")) << scheme << seed;
      EXPECT_EQ(read, FileBytes(tensors)) << scheme << seed;
    }
  }
}

// Another node may have other files below the same name, and has its own page cache in any case.
TEST(MappedLoadTest, RanksOfSeveralNodesReadOnceBetweenThem) {
  constexpr int kRanks = 3;
  const std::vector<TensorTransfer> tensors = LargeTensors(kRanks);
  const CheckpointDir dir;
  dir.Write(tensors, 2, true);
  std::atomic<int64_t> sent = 0;
  OnNodes({0, 0, 1}, [&](int rank, Session* session) {
    RankTensors mine(tensors, Side::kDestination, rank, 1);
    sent += LoadCheckpoint(session, "mmap:" + dir.path(), mine.tensors).value().sent_bytes;
    mine.ExpectHolds(kRound);
  });
  EXPECT_GT(sent, 0);
}

// A destination whose first write cuts the file: what is left of the copy reads pages that are
// gone.
std::string* file_to_cut = nullptr;
std::byte* untouched = nullptr;
size_t untouched_bytes = 0;
std::atomic<int> cuts{0};

void CutTheFile(int, siginfo_t* info, void*) {
  const auto* at = static_cast<std::byte*>(info->si_addr);
  if (at < untouched || at >= untouched + untouched_bytes ||
      mprotect(untouched, untouched_bytes, PROT_READ | PROT_WRITE) != 0 ||
      truncate(file_to_cut->c_str(), 4096) != 0) {
    signal(SIGSEGV, SIG_DFL);  // not ours
  }
  ++cuts;
}

TEST(MappedLoadTest, AFileThatIsCutWhileItIsCopiedIsAnError) {
  const Layout own = MakeLayout(1, "R");
  const std::vector<TensorTransfer> tensors = {
      {"a", {100, 1000}, DType::kF32, DType::kF32, own, own}};
  const CheckpointDir dir;
  dir.Write(tensors, 1, false);
  std::string path = dir.FileOf(0, 1);
  file_to_cut = &path;
  untouched_bytes = size_t{1} << 19;
  void* const memory =
      mmap(nullptr, untouched_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  untouched = static_cast<std::byte*>(memory);
  struct sigaction cutting = {}, before = {};
  cutting.sa_sigaction = &CutTheFile;
  cutting.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(SIGSEGV, &cutting, &before), 0);
  WithSessions(1, [&](int, Session* session) {
    CheckpointTensor tensor;
    tensor.name = "a";
    tensor.shape = {100, 1000};
    tensor.layout = own;
    tensor.view = DenseView(untouched, tensor.shape, DType::kF32);
    const absl::Status status = LoadCheckpoint(session, "mmap:" + dir.path(), {tensor}).status();
    EXPECT_THAT(status, Fails(absl::StatusCode::kDataLoss, "who was lent bytes saw zeros"));
  });
  EXPECT_EQ(cuts, 1);
  ASSERT_EQ(sigaction(SIGSEGV, &before, nullptr), 0);
  munmap(memory, untouched_bytes);
}

}  // namespace
}  // namespace sluice
