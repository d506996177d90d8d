// Folds: receives that meet several sends, each by a part of theirs.
#include <cerrno>
#include <utility>

#include "tensor/error_text.h"
#include "transport/direct/direct_copy.h"
#include "transport/direct/direct_transport.h"
#include "transport/op_check.h"

namespace sluice {

void DirectTransport::StartFold(const TransportOp& op) {
  const Number number = Add(op);
  Number* last = &At(number).next_part;
  for (const FoldSource& source : op.fold->sources) {
    if (source.peer < 0) continue;
    TransportOp receive = op;
    receive.peer = source.peer;
    receive.tag = source.tag;
    const Number part = Add(receive);
    At(part).is_part = true;
    At(part).fold = number;
    *last = part;
    last = &At(part).next_part;
    ++At(number).left;
  }
  At(number).peer = -1;
  // A part that meets its send may be freed, if the fold has failed.
  for (Number part = At(number).next_part; part != kNone;) {
    const Number next = At(part).next_part;
    if (has_ended_[static_cast<size_t>(At(part).peer)] == 0) {
      StartReceive(part);
    } else {
      if (At(part).fold != kNone) EndFold(number, PeerEndedError(At(part)));
      Free(part);
    }
    part = next;
  }
}

void DirectTransport::MeetPart(Number number, const DirectMessage& offer) {
  Operation& part = At(number);
  const uint64_t bytes = offer.place.rows.bytes;
  part.state = State::kMet;
  part.send = offer.op;
  part.send_generation = offer.generation;
  part.theirs = offer.place;
  if (part.fold == kNone) return TellPart(number, DirectMessage::Kind::kRefuse);
  if (bytes != part.op.bytes) {
    return EndFold(part.fold, LengthError(part.op, node_.rank(), bytes));
  }
  const uint64_t element_bytes = static_cast<uint64_t>(DTypeBytes(part.op.fold->dtype));
  if (offer.place.rows.row_bytes % element_bytes != 0) {
    return EndFold(part.fold,
                   MakeError(absl::StatusCode::kInvalidArgument, DescribeOp(part.op, node_.rank()),
                             ": the message has rows of ", offer.place.rows.row_bytes,
                             " bytes, which end inside a ", DTypeName(part.op.fold->dtype)));
  }
  if (--At(part.fold).left == 0) BeginFold(part.fold);
}

void DirectTransport::BeginFold(Number number) {
  Operation& fold = At(number);
  const DirectRows rows = DirectRows::Of(fold.op);
  fold.state = State::kCopying;
  fold.piece_bytes = DirectPieceBytes(At(fold.next_part).theirs.rows, rows);
  fold.end_piece = (rows.bytes + fold.piece_bytes - 1) / fold.piece_bytes;
  copying_.push_back(number);
}

int DirectTransport::FoldPiece(const Operation& fold, uint64_t begin, uint64_t end) {
  const TransportOp& op = fold.op;
  folder_.Clear();
  Number part = fold.next_part;
  for (const FoldSource& source : op.fold->sources) {
    if (source.peer < 0) {
      folder_.AddOwn(source.data, {op.bytes, source.row_bytes, source.stride_bytes});
      continue;
    }
    folder_.AddPeers(PeerAt(At(part).peer), At(part).theirs);
    part = At(part).next_part;
  }
  const DirectFoldResult result =
      folder_.Run(*op.fold, op.data, DirectRows::Of(op), begin, end, op.stores);
  if (result.error == 0) return 0;
  part = fold.next_part;
  for (size_t i = 0; i < result.contribution; ++i) {
    if (op.fold->sources[i].peer >= 0) part = At(part).next_part;
  }
  At(part).error = result.error;
  return result.error;
}

absl::Status DirectTransport::PartError(const Operation& fold) {
  for (Number part = fold.next_part; part != kNone; part = At(part).next_part) {
    if (At(part).error != 0) return CopyError(At(part), At(part).error);
  }
  return absl::OkStatus();
}

void DirectTransport::EndFold(Number number, absl::Status status) {
  Operation& fold = At(number);
  if (fold.state != State::kWaiting && fold.state != State::kCopying) return;
  const auto kind = status.ok() ? DirectMessage::Kind::kDone : DirectMessage::Kind::kRefuse;
  fold.state = State::kTelling;
  fold.status = std::move(status);
  fold.left = 1;  // so that it does not end before all have been looked at
  for (Number part = fold.next_part; part != kNone;) {
    const Number next = At(part).next_part;
    if (At(part).state == State::kMet) {
      ++fold.left;
      TellPart(part, kind);
    } else {
      // Memory that the fold points to goes with the fold's event.
      At(part).fold = kNone;
      At(part).op.fold = nullptr;
    }
    part = next;
  }
  if (--fold.left == 0) End(number, std::move(fold.status));
}

void DirectTransport::TellPart(Number number, DirectMessage::Kind kind) {
  Operation& part = At(number);
  DirectMessage message;
  message.kind = kind;
  message.op = part.send;
  message.generation = part.send_generation;
  message.place.rows = DirectRows::Of(part.op);
  if (kind == DirectMessage::Kind::kRefuse && part.theirs.rows.bytes == part.op.bytes) {
    message.error = part.error != 0 ? part.error : ECANCELED;
  }
  part.state = State::kTelling;
  if (TellOrKeep(part.peer, {message, number})) EndPart(number);
}

void DirectTransport::EndPart(Number number) {
  const Number fold = At(number).fold;
  Free(number);
  if (fold != kNone && --At(fold).left == 0) End(fold, std::move(At(fold).status));
}

void DirectTransport::WithdrawPart(Number number) {
  const Number fold = At(number).fold;
  if (fold != kNone) EndFold(fold, WithdrawnError(At(fold).op, node_.rank()));
  Free(number);
}

}  // namespace sluice
