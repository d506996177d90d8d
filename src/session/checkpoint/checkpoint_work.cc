// Steps that saving and loading share.
#include "session/checkpoint/checkpoint_work.h"

#include <algorithm>

#include "tensor/check.h"

namespace sluice {

CheckpointWork::CheckpointWork(CheckpointPlan* plan, int rank,
                               const std::vector<CheckpointPlace>* places, int window)
    : plan_(plan), rank_(rank), places_(places), pieces_(static_cast<size_t>(window)) {}

void CheckpointWork::set_progress(CheckpointProgress* progress, absl::Span<const int64_t> bytes) {
  progress_ = progress;
  if (progress == nullptr) return;
  int64_t total = 0;
  for (const int64_t of_tensor : bytes) {
    bytes_before_.push_back(total);
    total += of_tensor;
  }
  progress->total = total;
}

bool CheckpointWork::NextPiece(ShardPiece* piece) {
  CheckpointPiece& next = pieces_[static_cast<size_t>(given_) % pieces_.size()];
  if (over() || !plan_->NextPiece(&next)) return false;
  next.alone |= shares_mapping_;
  *piece = ShardPiece();
  piece->id = CheckpointPlan::IdOf(next);
  piece->channel = static_cast<int>(next.number % kCheckpointChannels);
  piece->bytes = next.bytes;
  piece->index = given_++;
  piece->stages = StagesOf(next);
  if ((piece->stages & kStageFill) != 0 && HasFile(next)) {
    const CheckpointPlace& place = PlaceOf(next);
    piece->read = {.object = place.object,
                   .offset = place.begin + next.offset,
                   .bytes = next.bytes,
                   .item = next.number,
                   .may_lend = may_lend_ && next.alone};
  }
  return true;
}

absl::Status CheckpointWork::Done(const ShardPiece& piece, const std::byte*) {
  const CheckpointPiece& done = PieceOf(piece);
  ++pieces_done_;
  if (done.file_rank == rank_) {
    ++file_pieces_done_;
    file_bytes_done_ += done.bytes;
  }
  if (progress_ != nullptr) {
    const int64_t before = bytes_before_[static_cast<size_t>(done.tensor)];
    progress_->done = std::max(progress_->done.load(), before + done.offset + done.bytes);
  }
  return absl::OkStatus();
}

absl::Span<const CheckpointPart> CheckpointWork::OwnParts(const CheckpointPiece& piece) {
  plan_->OwnPart(piece, &own_);
  return own_.parts;
}

void CheckpointWork::AddOwnMessages(const CheckpointPiece& piece, TransportOp message,
                                    std::vector<TransportOp>* messages) {
  const size_t element_bytes = static_cast<size_t>(DTypeBytes(PlaceOf(piece).file_dtype));
  message.peer = piece.file_rank;
  for (const CheckpointPart& part : OwnParts(piece)) {
    message.bytes = static_cast<size_t>(part.elements) * element_bytes;
    messages->push_back(message);
    message.data += message.bytes;
  }
}

void CheckpointWork::VisitOthers(
    const CheckpointPiece& piece,
    absl::FunctionRef<void(const CheckpointPart& part, const Rows& rows, int64_t packed)> visit) {
  if (piece.alone) return;
  plan_->OtherParts(piece, &others_);
  const DType dtype = PlaceOf(piece).file_dtype;
  int64_t packed = PackedOffset(piece.bytes);
  for (const CheckpointPart& part : others_.parts) {
    const std::optional<Rows> rows = RowsInBox(part, plan_->flow(), dtype);
    if (rows) {
      visit(part, *rows, -1);
      continue;
    }
    visit(part, Rows(), packed);
    packed += part.elements * DTypeBytes(dtype);
  }
}

void CheckpointWork::PlacePart(const CheckpointPart& part, const Rows& rows, int64_t packed,
                               size_t element_bytes, std::byte* data, TransportOp* message) {
  message->bytes = static_cast<size_t>(part.elements) * element_bytes;
  message->data = data + (packed < 0 ? rows.offset : packed);
  if (rows.count <= 1) return;
  message->row_bytes = static_cast<size_t>(rows.row_bytes);
  message->stride_bytes = static_cast<size_t>(rows.stride_bytes);
}

}  // namespace sluice
