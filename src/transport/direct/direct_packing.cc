// Pieces through slots: packed by the sender, and copied out by the receiver.
#include <algorithm>
#include <cerrno>

#include "transport/direct/direct_copy.h"
#include "transport/direct/direct_transport.h"

namespace sluice {

uint32_t DirectTransport::FreeSlot() {
  for (uint32_t slot = 0; slot < DirectSlots::kSlots; ++slot) {
    if (node_.slots().IsFree(slot)) return slot;
    // A peer that has parted copies nothing any more.
    if (PeerAt(peer_of_slot_[slot]).in().HasParted()) return slot;
  }
  return kNone;
}

void DirectTransport::PackPieceOf(Number number, uint64_t piece) {
  const Operation& send = At(number);
  const uint64_t begin = piece * send.piece_bytes;
  const uint64_t end = std::min(begin + send.piece_bytes, send.op.bytes);
  DirectMessage packed;
  packed.kind = DirectMessage::Kind::kPacked;
  packed.claims = send.claims_number;
  packed.slot = FreeSlot();
  packed.piece = piece;
  node_.slots().Pack(packed.slot);
  peer_of_slot_[packed.slot] = send.peer;
  PackPiece(send.op.data, DirectRows::Of(send.op), begin, end, node_.slots().data(packed.slot));
  Tell(send.peer, packed);
}

void DirectTransport::TakePacked(int peer, const DirectMessage& packed) {
  const Number receive =
      packed.claims < DirectNode::kClaims ? user_of_claims_[packed.claims] : kNone;
  if (receive == kNone || At(receive).peer != peer || !At(receive).by_slots ||
      packed.piece >= At(receive).pieces || packed.slot >= DirectSlots::kSlots) {
    return Refuse(peer, "of a piece that nobody waits for");
  }
  At(receive).is_reluctant = true;
  packed_.push_back({receive, packed.slot, packed.piece});
}

int64_t DirectTransport::Unpack(int64_t bytes_max) {
  int64_t bytes = 0;
  size_t done = 0;
  for (; done < packed_.size() && bytes < bytes_max; ++done) {
    const PackedPiece& packed = packed_[done];
    const Operation& receive = At(packed.receive);
    DirectSlots& slots = PeerAt(receive.peer).slots();
    const DirectRows rows = DirectRows::Of(receive.op);
    const uint64_t begin = packed.piece * receive.piece_bytes;
    const uint64_t end = std::min(begin + receive.piece_bytes, rows.bytes);
    if (receive.error == 0) {
      UnpackPiece(slots.data(packed.slot), receive.op.data, rows, begin, end, receive.op.stores);
    }
    slots.Empty(packed.slot);
    receive.claims->Finish(1);
    bytes += static_cast<int64_t>(end - begin);
  }
  packed_.erase(packed_.begin(), packed_.begin() + static_cast<ptrdiff_t>(done));
  return bytes;
}

void DirectTransport::DropPacked(int peer) {
  std::erase_if(packed_,
                [&](const PackedPiece& packed) { return At(packed.receive).peer == peer; });
  for (uint32_t slot = 0; slot < DirectSlots::kSlots; ++slot) {
    if (peer_of_slot_[slot] == peer) node_.slots().Empty(slot);
  }
}

void DirectTransport::DropUntold() {
  for (size_t peer = 0; peer < backlogs_.size(); ++peer) {
    const Backlog& backlog = backlogs_[peer];
    for (size_t word = backlog.first; word < backlog.words.size(); ++word) {
      const DirectMessage& message = backlog.words[word].message;
      if (message.kind != DirectMessage::Kind::kPacked) continue;
      PeerAt(static_cast<int>(peer)).claims(message.claims).Fail(ECANCELED);
    }
  }
}

}  // namespace sluice
