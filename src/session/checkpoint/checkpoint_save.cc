// Parts become boxes, and boxes ranges of files.
#include "session/checkpoint/checkpoint_save.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "tensor/error_text.h"

namespace sluice {

WriteOp CheckpointSaveWork::WriteOf(const ShardPiece& shard_piece) {
  const CheckpointPiece& piece = PieceOf(shard_piece);
  const CheckpointPlace& place = PlaceOf(piece);
  if (!HasFile(piece)) return {};
  return {.object = place.object, .offset = place.begin + piece.offset, .bytes = piece.bytes};
}

StageSet CheckpointSaveWork::StagesOf(const CheckpointPiece& piece) const {
  if (!HasFile(piece)) return kStageFill | kStageMove;
  return piece.alone ? kStageDrain : kStageMove | kStageDrain;
}

absl::Status CheckpointSaveWork::Fill(const ShardPiece& shard_piece, std::byte* data,
                                      CopyQueue* copies) {
  const CheckpointPiece& piece = PieceOf(shard_piece);
  const CheckpointPlace& place = PlaceOf(piece);
  const absl::Span<const CheckpointPart> own = OwnParts(piece);
  whole_runs_.resize(std::max(whole_runs_.size(), own.size()));
  for (size_t i = 0; i < own.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(copies->Add(
        PartCopy(own[i], LocalSide(own[i], place.ViewOf(own[i]), place.dtype),
                 PackedSide(own[i], data, place.file_dtype, staging_), &whole_runs_[i])));
    data += own[i].elements * DTypeBytes(place.file_dtype);
  }
  return absl::OkStatus();
}

void CheckpointSaveWork::AddMessages(const ShardPiece& shard_piece, std::byte* data,
                                     uint64_t cookie, std::vector<TransportOp>* messages) {
  const CheckpointPiece& piece = PieceOf(shard_piece);
  const size_t element_bytes = static_cast<size_t>(DTypeBytes(PlaceOf(piece).file_dtype));
  TransportOp op;
  op.tag = shard_piece.channel;
  op.cookie = cookie;
  if (!HasFile(piece)) {
    op.data = data;
    const size_t before = messages->size();
    AddOwnMessages(piece, op, messages);
    for (size_t i = before; i < messages->size(); ++i) {
      sent_bytes_ += static_cast<int64_t>((*messages)[i].bytes);
    }
    return;
  }
  op.kind = TransportOp::Kind::kReceive;
  VisitOthers(piece, [&](const CheckpointPart& part, const Rows& rows, int64_t packed) {
    TransportOp receive = op;
    receive.peer = part.ranks[0];
    PlacePart(part, rows, packed, element_bytes, data, &receive);
    messages->push_back(receive);
  });
}

absl::Status CheckpointSaveWork::Drain(const ShardPiece& shard_piece, std::byte* data,
                                       CopyQueue* copies) {
  const CheckpointPiece& piece = PieceOf(shard_piece);
  const CheckpointPlace& place = PlaceOf(piece);
  absl::Status status;
  for (const CheckpointPart& own : OwnParts(piece)) {
    status = copies->Add(BoxCopy(own, LocalSide(own, place.ViewOf(own), place.dtype),
                                 BoxSide(own, data, place.file_dtype, staging_)));
    if (!status.ok()) return status;
  }
  VisitOthers(piece, [&](const CheckpointPart& part, const Rows&, int64_t packed) {
    if (packed < 0 || !status.ok()) return;
    status = copies->Add(BoxCopy(part, PackedSide(part, data + packed, place.file_dtype, staging_),
                                 BoxSide(part, data, place.file_dtype, staging_)));
  });
  return status;
}

}  // namespace sluice
