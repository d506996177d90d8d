// Decides who copies what has met: both ends, one of them, or neither.

#include "transport/direct/direct_copy.h"
#include "transport/direct/direct_transport.h"
#include "transport/op_check.h"

namespace sluice {

// The receive may write from now on.
void DirectTransport::Meet(Number receive, const DirectMessage& offer) {
  Operation& operation = At(receive);
  if (operation.is_part) return MeetPart(receive, offer);
  const DirectRows rows = DirectRows::Of(operation.op);
  operation.send = offer.op;
  operation.send_generation = offer.generation;
  if (offer.place.rows.bytes == rows.bytes) return BeginReceive(receive, offer);
  DirectMessage refusal;
  refusal.kind = DirectMessage::Kind::kRefuse;
  refusal.op = offer.op;
  refusal.generation = offer.generation;
  refusal.place.rows = rows;
  TellAndEnd(receive, refusal, LengthError(operation.op, node_.rank(), offer.place.rows.bytes));
}

void DirectTransport::BeginReceive(Number receive, const DirectMessage& offer) {
  Operation& operation = At(receive);
  const DirectRows rows = DirectRows::Of(operation.op);
  operation.theirs = offer.place;
  operation.by_sender = rows.bytes > 0 && !PeerAt(operation.peer).CanRead(offer.place);
  const DirectPlace place = node_.PlaceOf(operation.op.data, rows);
  operation.piece_bytes = DirectPieceBytes(offer.place.rows, rows);
  if (operation.piece_bytes < rows.bytes && GoesBySlots(operation, place)) {
    operation.by_slots = true;
    operation.piece_bytes = DirectPieceBytes(offer.place.rows, rows, DirectSlots::kSlotBytes);
  }
  operation.end_piece = (rows.bytes + operation.piece_bytes - 1) / operation.piece_bytes;
  operation.pieces = operation.end_piece;
  if (!BeginClaims(receive, place) && operation.by_sender) {
    DirectMessage word;
    word.kind = DirectMessage::Kind::kByMessage;
    word.op = offer.op;
    word.generation = offer.generation;
    if (TellOrKeep(operation.peer, {word, receive})) return HandOver(receive);
    // It stays here until the word has left, so that somebody polls.
    operation.state = State::kTelling;
    operation.by_message = true;
    return;
  }
  operation.state = State::kCopying;
  copying_.push_back(receive);
}

// Has the sender copy as well, or alone. False if it does not: it cannot, need not, or there are no
// claims for it.
bool DirectTransport::BeginClaims(Number receive, const DirectPlace& place) {
  Operation& operation = At(receive);
  if (operation.end_piece < 2 && !operation.by_sender) return false;
  if (!PeerAt(operation.peer).CanWriteHere(place)) return false;
  const Number claims = FreeClaims();
  if (claims == kNone) return false;
  operation.claims = &node_.claims(claims);
  operation.claims_number = claims;
  operation.is_reluctant = operation.by_slots || CostsMore(operation.theirs, place);
  user_of_claims_[claims] = receive;
  operation.claims->Begin(operation.end_piece, operation.piece_bytes);
  operation.next_piece = operation.end_piece;
  DirectMessage accept;
  accept.kind = DirectMessage::Kind::kAccept;
  accept.op = operation.send;
  accept.generation = operation.send_generation;
  accept.claims = claims;
  accept.place = place;
  accept.stores = operation.op.stores;
  accept.by_sender = operation.by_sender;
  accept.by_slots = operation.by_slots;
  Tell(operation.peer, accept);
  return true;
}

bool DirectTransport::GoesBySlots(const Operation& receive, const DirectPlace& own) {
  if (receive.by_sender || private_copies_ == PrivateCopies::kByKernel) return false;
  const DirectPeer& peer = PeerAt(receive.peer);
  if (private_copies_ == PrivateCopies::kBySlots) return receive.theirs.segment == 0;
  const bool is_private = own.segment == 0 && peer.Reach(receive.theirs) == nullptr;
  return is_private && peer.writes_here() && SlotsAreFaster();
}

// Claims that neither end looks at any more; kNone if there are none.
DirectTransport::Number DirectTransport::FreeClaims() {
  for (Number tries = 0; tries < DirectNode::kClaims; ++tries) {
    const Number number = next_claims_;
    next_claims_ = (next_claims_ + 1) % DirectNode::kClaims;
    if (user_of_claims_[number] == kNone && !node_.claims(number).used()) return number;
  }
  return kNone;
}

// Words between two processes come in order. So the ends of messages are handed over in one order.
void DirectTransport::HandOver(Number number) {
  handed_over_.push_back(At(number).op);
  Free(number);
}

void DirectTransport::TakeHandedOver(std::vector<TransportOp>* ops) {
  ops->insert(ops->end(), handed_over_.begin(), handed_over_.end());
  handed_over_.clear();
}

}  // namespace sluice
