// Loads from a file into local tensors: the file rank reads a box and sends each member its part.
#include <algorithm>

#include "session/checkpoint/checkpoint_work.h"

namespace sluice {

StageSet CheckpointLoadWork::StagesOf(const CheckpointPiece& piece) const {
  StageSet stages = kStageDrain;
  if (HasFile(piece)) stages |= kStageFill;
  if (!piece.alone) stages |= kStageMove;
  return stages;
}

absl::Status CheckpointLoadWork::Fill(const ShardPiece& shard_piece, std::byte* data,
                                      CopyQueue* copies) {
  const CheckpointPiece& piece = PieceOf(shard_piece);
  const DType dtype = PlaceOf(piece).file_dtype;
  absl::Status status;
  VisitOthers(piece, [&](const CheckpointPart& part, const Rows&, int64_t packed) {
    if (packed < 0 || !status.ok()) return;
    status = copies->Add(BoxCopy(part, BoxSide(part, data, dtype, staging_),
                                 PackedSide(part, data + packed, dtype, staging_)));
  });
  return status;
}

void CheckpointLoadWork::AddMessages(const ShardPiece& shard_piece, std::byte* data,
                                     uint64_t cookie, std::vector<TransportOp>* messages) {
  const CheckpointPiece& piece = PieceOf(shard_piece);
  const size_t element_bytes = static_cast<size_t>(DTypeBytes(PlaceOf(piece).file_dtype));
  TransportOp op;
  op.tag = shard_piece.channel;
  op.cookie = cookie;
  if (!HasFile(piece)) {
    op.kind = TransportOp::Kind::kReceive;
    op.data = data;
    AddOwnMessages(piece, op, messages);
    return;
  }
  VisitOthers(piece, [&](const CheckpointPart& part, const Rows& rows, int64_t packed) {
    TransportOp send = op;
    PlacePart(part, rows, packed, element_bytes, data, &send);
    for (const int rank : part.ranks) {
      send.peer = rank;
      sent_bytes_ += static_cast<int64_t>(send.bytes);
      messages->push_back(send);
    }
  });
}

absl::Status CheckpointLoadWork::Drain(const ShardPiece& shard_piece, std::byte* data,
                                       CopyQueue* copies) {
  const CheckpointPiece& piece = PieceOf(shard_piece);
  const CheckpointPlace& place = PlaceOf(piece);
  const absl::Span<const CheckpointPart> own = OwnParts(piece);
  whole_runs_.resize(std::max(whole_runs_.size(), own.size()));
  for (size_t i = 0; i < own.size(); ++i) {
    const CheckpointPart& part = own[i];
    const CheckpointSide local = LocalSide(part, place.ViewOf(part), place.dtype);
    const absl::Status status =
        HasFile(piece)
            ? copies->Add(BoxCopy(part, BoxSide(part, data, place.file_dtype, staging_), local))
            : copies->Add(PartCopy(part, PackedSide(part, data, place.file_dtype, staging_), local,
                                   &whole_runs_[i]));
    if (!status.ok()) return status;
    if (!HasFile(piece)) data += part.elements * DTypeBytes(place.file_dtype);
  }
  return absl::OkStatus();
}

}  // namespace sluice
