// A checkpoint's buckets: pieces of its files on their way into local tensors, or out of them.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_WORK_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_WORK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "plan/shard/checkpoint_plan.h"
#include "session/base/views.h"
#include "session/checkpoint/checkpoint_copies.h"
#include "session/shard/shard_runner.h"
#include "sluice/checkpoint.h"
#include "sluice/tensor.h"

namespace sluice {

// One tensor of a CheckpointPlan, on this rank.
struct CheckpointPlace {
  int object = 0;     // the file
  int64_t begin = 0;  // bytes, in it
  DType file_dtype = DType::kF32;
  DType dtype = DType::kF32;
  BoundView view;
  std::vector<BoundView> boxes = {};  // in place of it: of each of this rank's boxes

  const BoundView& ViewOf(const CheckpointPart& part) const {
    return boxes.empty() ? view : boxes[static_cast<size_t>(part.view)];
  }
};

// Tags of messages, and channels of the engine: pieces of one tag go in order, others do not wait
// for each other.
inline constexpr int kCheckpointChannels = 1024;

// The offset at which the parts of a box begin that are packed behind the box.
constexpr int64_t PackedOffset(int64_t box_bytes) { return (box_bytes + 63) / 64 * 64; }

// The work that both directions share. The plan and the places must outlive this object.
class CheckpointWork : public ShardWork {
 public:
  // `window`: pieces that may be unfinished at once: ShardRunner's look-ahead.
  CheckpointWork(CheckpointPlan* plan, int rank, const std::vector<CheckpointPlace>* places,
                 int window);

  bool NextPiece(ShardPiece* piece) override;
  bool over() const override { return plan_->over(); }
  void Arrived(const ShardPiece&) override {}
  bool MayDrain(const ShardPiece&) override { return true; }
  absl::Status Done(const ShardPiece& piece, const std::byte* data) override;

  int64_t pieces_done() const { return pieces_done_; }
  int64_t file_pieces_done() const { return file_pieces_done_; }
  int64_t file_bytes_done() const { return file_bytes_done_; }
  int64_t sent_bytes() const { return sent_bytes_; }

  // The kind of memory of the blocks that pieces come to.
  void set_staging(DeviceKind staging) { staging_ = staging; }
  // Whether bytes that this rank alone wants may stay where the source has them until they are
  // copied.
  void set_may_lend(bool may_lend) { may_lend_ = may_lend; }
  // Whether each rank takes its own parts of all pieces from a mapping, and sends none. Equal on
  // all ranks. Only the file rank counts a piece as read.
  void set_shares_mapping(bool shares) { shares_mapping_ = shares; }
  // May be null. `bytes`: of each tensor in the files.
  void set_progress(CheckpointProgress* progress, absl::Span<const int64_t> bytes);

 protected:
  const CheckpointPiece& PieceOf(const ShardPiece& piece) const {
    return pieces_[static_cast<size_t>(piece.index) % pieces_.size()];
  }
  const CheckpointPlace& PlaceOf(const CheckpointPiece& piece) const {
    return (*places_)[static_cast<size_t>(piece.tensor)];
  }
  bool HasFile(const CheckpointPiece& piece) const {
    return shares_mapping_ || piece.file_rank == rank_;
  }
  // One; or one or more, if the rank has boxes. Valid until the next call.
  absl::Span<const CheckpointPart> OwnParts(const CheckpointPiece& piece);
  // Adds a message of each own part, to or from the file rank. The parts lie in the block one after
  // the other.
  void AddOwnMessages(const CheckpointPiece& piece, TransportOp message,
                      std::vector<TransportOp>* messages);
  // Calls `visit` with each part of another rank, and where in the block it lies packed; -1: it
  // lies in the box as `rows` say.
  void VisitOthers(
      const CheckpointPiece& piece,
      absl::FunctionRef<void(const CheckpointPart& part, const Rows& rows, int64_t packed)> visit);

  // Says where in the block at `data` a message of such a part lies: as rows of the box, or packed.
  static void PlacePart(const CheckpointPart& part, const Rows& rows, int64_t packed,
                        size_t element_bytes, std::byte* data, TransportOp* message);

  virtual StageSet StagesOf(const CheckpointPiece& piece) const = 0;

  DeviceKind staging_ = DeviceKind::kCpu;
  CheckpointPlan* const plan_;
  const int rank_;
  const std::vector<CheckpointPlace>* const places_;
  std::vector<WholeRuns> whole_runs_;  // of the own parts of the piece that is copied
  int64_t sent_bytes_ = 0;

 private:
  bool may_lend_ = false;
  bool shares_mapping_ = false;
  CheckpointProgress* progress_ = nullptr;
  std::vector<int64_t> bytes_before_;    // each tensor, in the files; of progress_
  std::vector<CheckpointPiece> pieces_;  // by index
  int64_t given_ = 0;
  CheckpointParts own_;
  CheckpointParts others_;
  int64_t pieces_done_ = 0;
  int64_t file_pieces_done_ = 0;
  int64_t file_bytes_done_ = 0;
};

class CheckpointLoadWork final : public CheckpointWork {
 public:
  using CheckpointWork::CheckpointWork;

  absl::Status Fill(const ShardPiece& piece, std::byte* data, CopyQueue* copies) override;
  void AddMessages(const ShardPiece& piece, std::byte* data, uint64_t cookie,
                   std::vector<TransportOp>* messages) override;
  absl::Status Drain(const ShardPiece& piece, std::byte* data, CopyQueue* copies) override;

 private:
  StageSet StagesOf(const CheckpointPiece& piece) const override;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINT_WORK_H_
