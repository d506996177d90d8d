// A data stream's buckets: which pieces come, whom they are exchanged with, and where in device
// memory they go.
#ifndef SLUICE_SRC_SESSION_STREAM_STREAM_WORK_H_
#define SLUICE_SRC_SESSION_STREAM_STREAM_WORK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "device/pixel_grid.h"
#include "plan/shard/stream_plan.h"
#include "session/shard/shard_runner.h"
#include "session/stream/device_cells.h"
#include "session/stream/item_normalizer.h"
#include "session/stream/stream_items.h"
#include "sluice/stream.h"

namespace sluice {

struct StreamWorkOptions {
  int64_t piece_bytes = 1;  // a multiple of 64, or as long as the longest item
  int window = 1;           // pieces that may be unfinished at once: ShardRunner's look-ahead
  bool in_order = true;
  bool keep_blocks = false;  // items are handed over in the blocks that they were read into
  bool lends = false;        // items may be handed over where the source has them
  int64_t batch_items = 1;
  bool groups_reads = false;  // items of a block of the order are read together
  absl::optional<ItemTransform> transform;
  bool await_in_stream = false;  // items are there when their last copy has been started
  DeviceTraits memory;           // which kinds pieces are read into, and items are delivered in
  StageTrace* trace = nullptr;   // null: nothing is recorded
};

// Tags of messages, and channels of the engine: pieces of one tag go in order, others do not wait
// for each other.
inline constexpr int kStreamChannels = 1024;

class StreamWork final : public ShardWork {
 public:
  // All must outlive this object.
  StreamWork(StreamPlan* plan, int rank, const StreamItems* items, DeviceCells* cells,
             const StreamWorkOptions& options);

  bool NextPiece(ShardPiece* piece) override;
  bool over() const override { return position_ == plan_->end(); }
  void AddMessages(const ShardPiece& piece, std::byte* data, uint64_t cookie,
                   std::vector<TransportOp>* messages) override;
  void Arrived(const ShardPiece& piece) override;
  bool MayDrain(const ShardPiece& piece) override;
  int KeepBlock(const ShardPiece& piece, std::byte* data, std::byte* memory, int block) override;
  bool KeepLent(const ShardPiece& piece, const std::byte* data,
                const std::shared_ptr<const LentMemory>& lender) override;
  absl::Status Drain(const ShardPiece& piece, std::byte* data, CopyQueue* copies) override;
  ErrorText MembersOf(const ShardPiece& piece) override;
  absl::Status Done(const ShardPiece& piece, const std::byte* data) override;

  // Items whose pieces have all been drained.
  int64_t items_done() const { return items_done_; }
  int64_t bytes_done() const { return bytes_done_; }
  // Into device buffers, as they lie on storage.
  int64_t bytes_copied() const { return bytes_copied_ + cells_->bytes_copied(); }

 private:
  // An item of which some piece was given out and not all are done.
  struct Underway {
    int64_t position = 0;
    StreamItem item;
    int64_t payload = 0;  // bytes that are handed out
    int32_t pieces = 1;   // at most StreamPlan::kPiecesMax
    int32_t arrived = 0;
    int32_t started = 0;  // drains
    int32_t drained = 0;
    int64_t begin_ns = 0;  // of its first stage
    bool granted = false;
    Cell cell;
  };
  // The part of such an item that the source has lent.
  struct Lent {
    int64_t pieces = 0;
    int64_t bytes = 0;                 // of the item, up to the end of its last lent piece
    const std::byte* begin = nullptr;  // of the item
    std::shared_ptr<const LentMemory> lender = nullptr;
  };

  int64_t PiecesOf(const StreamItem& item) const;
  int ReaderOf(const Underway& item, absl::Span<const int> sharers) const;
  void CountIntoBatch();
  bool IsLastOfEpoch(int64_t position) const;
  int64_t TakeLength(const ShardPiece& piece, const std::byte* data);
  size_t PlaceOf(int64_t index) const { return static_cast<size_t>(index) % underway_.size(); }
  Underway& At(int64_t index) { return underway_[PlaceOf(index)]; }
  bool Grant(int64_t index);
  // The item at position_ may be lent: it is this rank's alone, and its batch can lie where it is.
  bool MayLend(const StreamItem& item);
  bool MayLendAlone(int64_t position, const StreamItem& item);
  bool MayLendBatch(const StreamItem& first);
  void EndLent(int64_t index);
  absl::Status AddCopy(const ShardPiece& piece, std::byte* data, CopyQueue* copies);

  StreamPlan* const plan_;
  const int rank_;
  const StreamItems* const items_;
  DeviceCells* const cells_;
  const StreamWorkOptions options_;
  absl::optional<ItemNormalizer> normalizer_;
  const int64_t pieces_max_;
  const int64_t total_;  // items of this rank

  // The piece that NextPiece gives next: piece part_ of the item at position_, the index_-th of
  // this rank.
  int64_t position_;
  int64_t index_ = 0;
  int64_t part_ = 0;
  int64_t batch_ = 0;        // that item's
  int64_t batch_taken_ = 0;  // its items up to that one
  int64_t last_given_epoch_ = 0;
  bool may_lend_ = false;    // that item
  int64_t batch_left_ = 0;   // items that follow in its batch
  int64_t batch_epoch_ = 0;  // of that batch

  // There are four for each slot and more: none has what only few streams need.
  std::vector<Underway> underway_;  // by index
  std::vector<Lent> lent_;          // by index, where the source lends
  std::vector<PixelGrid> grids_;    // by index, with a transform
  int64_t first_ungranted_ = 0;
  int64_t granted_ = 0;
  int64_t last_epoch_ = 0;  // of the last granted one
  int64_t items_done_ = 0;
  int64_t bytes_done_ = 0;
  int64_t bytes_copied_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_STREAM_WORK_H_
