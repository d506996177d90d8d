// Checkpoints of many tiny pieces: what a rank holds is its budget and a constant, whatever is kept
// for each piece.

#include <barrier>
#include <cstdint>
#include <functional>
#include <vector>

#include "checkpoint/checkpoint_dir.h"
#include "gtest/gtest.h"
#include "oracle/make_layout.h"
#include "session/heap_bytes.h"
#include "sluice/session.h"

namespace sluice {
namespace {

using checkpoint_test::CheckpointDir;
using checkpoint_test::kRound;
using checkpoint_test::RankTensors;
using checkpoint_test::WithSessions;
using session_test::Side;

// 65,536 pieces of 64 bytes: to all ranks from a file, and from parts of all ranks to a file.
std::vector<TensorTransfer> OneTensor(int ranks) {
  constexpr int64_t kElements = 1 << 20;
  TensorTransfer tensor;
  tensor.name = "w";
  tensor.shape = {16, kElements / 16};
  tensor.src = oracle::MakeLayout(ranks, "S(1)");
  tensor.dst = oracle::MakeLayout(ranks, "R");
  return {tensor};
}

using Call = std::function<absl::StatusOr<CheckpointStats>(Session* session,
                                                           absl::Span<const CheckpointTensor>)>;

// What the heap and the slots came to in a call, of each rank, if all slots were used.
int64_t HeldIn(const std::vector<TensorTransfer>& tensors, int ranks, Side side, const Call& call) {
  std::barrier meet(ranks);
  int64_t before = 0;
  int64_t held = 0;
  WithSessions(ranks, [&](int rank, Session* session) {
    RankTensors mine(tensors, side, rank, 1);
    meet.arrive_and_wait();
    if (rank == 0) {
      before = session_test::HeapBytes();
      session_test::ResetHeapBytesPeak();
    }
    meet.arrive_and_wait();
    const absl::StatusOr<CheckpointStats> stats = call(session, mine.tensors);
    EXPECT_TRUE(stats.ok()) << stats.status();
    meet.arrive_and_wait();
    if (!stats.ok()) return;
    if (side == Side::kDestination) mine.ExpectHolds(kRound);
    if (rank > 0) return;
    const int64_t slot_bytes = stats->budget_bytes_peak / stats->slots_peak;
    held = (session_test::HeapBytesPeak() - before) / ranks + stats->slots_max * slot_bytes;
    EXPECT_GE(stats->slots_max * slot_bytes, stats->budget_bytes / 4) << "most of it is for pieces";
  });
  return held;
}

TEST(CheckpointBookkeepingTest, TinyPiecesKeepToTheBudget) {
  for (const int ranks : {1, 3}) {
    const std::vector<TensorTransfer> tensors = OneTensor(ranks);
    const CheckpointDir dir;
    dir.Write(tensors, 1, false);
    CheckpointOptions options;
    options.piece_bytes = 64;
    options.budget_bytes = int64_t{56} << 20;
    const int64_t allowed = options.budget_bytes + (int64_t{4} << 20);
    EXPECT_LE(HeldIn(tensors, ranks, Side::kDestination,
                     [&](Session* session, absl::Span<const CheckpointTensor> mine) {
                       return LoadCheckpoint(session, dir.uri(), mine, options);
                     }),
              allowed)
        << ranks << " ranks load";
    const CheckpointDir to;
    EXPECT_LE(HeldIn(tensors, ranks, Side::kSource,
                     [&](Session* session, absl::Span<const CheckpointTensor> mine) {
                       return SaveCheckpoint(session, to.path(), mine, options);
                     }),
              allowed)
        << ranks << " ranks save";
  }
}

}  // namespace
}  // namespace sluice
