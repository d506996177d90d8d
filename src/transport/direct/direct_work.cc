// Copies the pieces of the copies under way.
#include <algorithm>
#include <utility>

#include "transport/direct/direct_copy.h"
#include "transport/direct/direct_transport.h"

namespace sluice {

bool DirectTransport::Copy(int64_t bytes_max) {
  int64_t bytes = Unpack(bytes_max);
  size_t kept = 0;
  for (size_t i = 0; i < copying_.size(); ++i) {
    const Number number = copying_[i];
    Operation& operation = At(number);
    uint64_t piece = 0;
    while (bytes < bytes_max && ClaimPiece(&operation, &piece)) {
      if (operation.packs()) {
        PackPieceOf(number, piece);
      } else {
        EndPiece(&operation, CopyPiece(operation, piece));
      }
      bytes += BytesCopied(operation);
    }
    if (HasEnded(operation)) {
      EndCopy(number);
    } else {
      copying_[kept++] = number;
    }
  }
  copying_.resize(kept);
  return bytes > 0;
}

bool DirectTransport::ClaimPiece(Operation* operation, uint64_t* piece) {
  if (operation->error != 0) return false;
  if (operation->next_piece < operation->end_piece) {
    *piece = operation->next_piece++;
    return true;
  }
  if (operation->claims == nullptr || !MayClaim(*operation)) return false;
  if (!operation->claims->Claim(piece)) return false;
  operation->is_reluctant = false;  // the other end has not come; it need not be waited for again
  if (*piece < operation->pieces) return true;
  Refuse(operation->peer, "with more pieces than there are");
  return false;
}

bool DirectTransport::MayClaim(const Operation& operation) {
  if (operation.packs()) return operation.may_claim && FreeSlot() != kNone;
  if (!operation.by_sender) {
    return operation.may_claim && (!operation.is_reluctant || idle_polls_ >= kPollsReluctant);
  }
  return operation.op.kind == TransportOp::Kind::kSend;
}

// By a piece; a fold adds up as many as it has sources, all but one.
int64_t DirectTransport::BytesCopied(const Operation& operation) {
  const Fold* const fold = operation.op.fold;
  const size_t copies = fold == nullptr ? 1 : fold->sources.size() - 1;
  return static_cast<int64_t>(operation.piece_bytes * copies);
}

int DirectTransport::CopyPiece(const Operation& operation, uint64_t piece) {
  const TransportOp& op = operation.op;
  const DirectRows rows = DirectRows::Of(op);
  const uint64_t begin = piece * operation.piece_bytes;
  const uint64_t end = std::min(begin + operation.piece_bytes, rows.bytes);
  if (op.fold != nullptr) return FoldPiece(operation, begin, end);
  const DirectPeer& peer = PeerAt(operation.peer);
  if (op.kind == TransportOp::Kind::kReceive) {
    return CopyFromPeer(peer, operation.theirs, op.data, rows, begin, end, op.stores);
  }
  return CopyToPeer(peer, op.data, rows, operation.theirs, begin, end, op.stores);
}

// Pieces that only this end copies count as finished when all of them are done. Until then only
// claimed pieces count.
void DirectTransport::EndPiece(Operation* operation, int error) {
  const bool is_own = operation->own_pieces > 0 || operation->claims == nullptr;
  if (error != 0) operation->error = error;
  if (operation->claims == nullptr) return;
  if (!is_own) {
    error == 0 ? operation->claims->Finish(1) : operation->claims->Fail(error);
  } else if (error != 0) {
    operation->claims->FailRest(error);
  } else if (operation->next_piece == operation->end_piece) {
    operation->claims->FinishRest(operation->own_pieces);
  }
}

// From now on the other end claims nothing; a receiver copies what is left.
void DirectTransport::CloseClaims(Operation* operation) {
  operation->may_claim = false;
  if (operation->op.kind == TransportOp::Kind::kSend || operation->claims == nullptr) return;
  if (operation->own_pieces > 0 || operation->by_sender) return;
  operation->next_piece = std::min(operation->claims->Close(), operation->end_piece);
  operation->own_pieces = operation->end_piece - operation->next_piece;
}

bool DirectTransport::HasEnded(const Operation& operation) {
  if (operation.claims != nullptr) {
    if (operation.claims->Ended()) return true;
    if (!operation.packs()) return false;
    // A receiver that has not parted waits for what has been packed for it.
    const bool has_told = backlogs_[static_cast<size_t>(operation.peer)].words.empty() ||
                          PeerAt(operation.peer).in().HasParted();
    return has_told && operation.claims->HasFailed();
  }
  return operation.error != 0 || operation.next_piece == operation.end_piece;
}

void DirectTransport::EndCopy(Number number) {
  Operation& operation = At(number);
  if (operation.op.fold != nullptr) return EndFold(number, PartError(operation));
  const int error = operation.claims != nullptr ? operation.claims->error() : operation.error;
  absl::Status status = error == 0 ? absl::OkStatus() : CopyError(operation, error);
  if (operation.claims != nullptr) {
    if (operation.op.kind == TransportOp::Kind::kSend) operation.claims->Release();
    return End(number, std::move(status));
  }
  DirectMessage outcome;
  outcome.kind = error == 0 ? DirectMessage::Kind::kDone : DirectMessage::Kind::kRefuse;
  outcome.op = operation.send;
  outcome.generation = operation.send_generation;
  outcome.error = error;
  TellAndEnd(number, outcome, std::move(status));
}

}  // namespace sluice
