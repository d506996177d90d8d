// Operations of this rank: how they start and end.
#include "transport/tcp/tcp_mailbox.h"

#include <optional>
#include <utility>

#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/op_check.h"

namespace sluice {

TcpMailbox::TcpMailbox(int rank, int size, uint32_t number, TcpOutlet* outlet)
    : rank_(rank),
      size_(size),
      number_(number),
      outlet_(outlet),
      incoming_(IndexOf(size)),
      peers_(IndexOf(size), Peer::kThere),
      told_(IndexOf(size)) {}

void TcpMailbox::Reserve(int capacity) {
  SLUICE_CHECK(outstanding_ == 0, "Reserve with operations outstanding");
  const int old_capacity = static_cast<int>(ops_.size());
  if (capacity <= old_capacity) return;
  ops_.resize(IndexOf(capacity));
  offers_.reserve(IndexOf(capacity));
  lines_.Reserve(IndexOf(capacity), IndexOf(size_));
  for (int slot = capacity - 1; slot >= old_capacity; --slot) {
    At(slot).next = std::exchange(first_free_, slot);
  }
}

TcpFrame TcpMailbox::FrameOf(TcpFrameKind kind, uint32_t slot) const {
  TcpFrame frame;
  frame.kind = kind;
  frame.transport = number_;
  frame.slot = slot;
  return frame;
}

TcpRows TcpMailbox::RowsOf(const TransportOp& op) {
  return {op.data, op.bytes, op.row_bytes, op.stride_bytes, 0};
}

absl::Status TcpMailbox::Start(absl::Span<const TransportOp> ops) {
  const int capacity = static_cast<int>(ops_.size());
  SLUICE_RETURN_IF_ERROR(CheckCapacity(ops.size(), outstanding_, capacity));
  SLUICE_CHECK(!parted_, "nothing may be started after parting");
  for (const TransportOp& op : ops) {
    const bool send = op.kind == TransportOp::Kind::kSend;
    const int slot = TakeSlot(op, send ? State::kOffered : State::kWaits);
    if (absl::Status broken = outlet_->Broken(op.peer); !broken.ok()) {
      End(slot, MakeError(absl::StatusCode::kUnavailable, DescribeOp(op, rank_), ": ", broken));
    } else if (send) {
      StartSend(slot);
    } else {
      StartReceive(slot);
    }
  }
  return absl::OkStatus();
}

int TcpMailbox::TakeSlot(const TransportOp& op, State state) {
  const int slot = first_free_;
  Op& taken = At(slot);
  first_free_ = taken.next;
  taken = Op();
  taken.op = op;
  taken.state = state;
  ++outstanding_;
  return slot;
}

void TcpMailbox::End(int slot, absl::Status status) {
  Op& op = At(slot);
  op.state = State::kEnded;
  op.status = std::move(status);
  op.next = -1;
  (last_ended_ < 0 ? first_ended_ : At(last_ended_).next) = slot;
  last_ended_ = slot;
}

void TcpMailbox::CutOff(int slot, absl::Status status) {
  Op& op = At(slot);
  op.state = State::kCutOff;
  op.status = std::move(status);
  cut_off_.Hold(slot);
}

int TcpMailbox::Poll(absl::Span<TransportEvent> events) {
  cut_off_.Release(parted_, [this](int slot) { End(slot, std::move(At(slot).status)); });
  size_t count = 0;
  for (; count < events.size() && first_ended_ >= 0; ++count) {
    const int slot = first_ended_;
    Op& op = At(slot);
    events[count].cookie = op.op.cookie;
    events[count].status = std::move(op.status);
    first_ended_ = op.next;
    if (first_ended_ < 0) last_ended_ = -1;
    op.state = State::kFree;
    op.next = std::exchange(first_free_, slot);
  }
  outstanding_ -= static_cast<int>(count);
  return static_cast<int>(count);
}

void TcpMailbox::StartSend(int slot) {
  Op& op = At(slot);
  TcpFrame frame = FrameOf(TcpFrameKind::kOffer, static_cast<uint32_t>(slot));
  frame.tag = static_cast<uint32_t>(op.op.tag);
  frame.bytes = op.op.bytes;
  if (op.op.bytes > kEagerBytes || !outlet_->TakeCredit(op.op.peer)) {
    outlet_->Send(op.op.peer, frame);
    return;
  }
  op.eager = op.has_credit = true;
  frame.flags = kEagerFlag;
  frame.length = op.op.bytes;
  outlet_->SendBorrowed(op.op.peer, frame, RowsOf(op.op), static_cast<uint32_t>(slot));
}

void TcpMailbox::StartReceive(int slot) {
  Op& op = At(slot);
  const std::optional<int> index = lines_.TakeOffer(op.op.peer, op.op.tag);
  if (!index) return lines_.AddReceive(op.op.peer, op.op.tag, slot);
  Offer& offer = offers_[IndexOf(*index)];
  if (offer.room < 0) {
    MeetAtSender(slot, offer.src, offer.slot, offer.bytes);
    FreeOffer(*index);
  } else if (offer.arrived) {
    TakeFromRoom(slot, *index);
  } else {
    op.state = State::kMet;
    op.eager = true;
    offer.receive = slot;
  }
}

void TcpMailbox::TakeFromRoom(int slot, int index) {
  const Offer offer = offers_[IndexOf(index)];
  const TransportOp& op = At(slot).op;
  if (op.bytes == offer.bytes) {
    RowsOf(op).Take(outlet_->Room(offer.src, offer.room), op.bytes);
    End(slot, absl::OkStatus());
  } else {
    End(slot, LengthError(op, rank_, offer.bytes));
  }
  FreeOffer(index);
  SendMet(offer.src, offer.slot);
}

void TcpMailbox::MeetAtSender(int slot, int src, uint32_t send_slot, uint64_t bytes) {
  Op& op = At(slot);
  if (op.op.bytes != bytes || bytes == 0) {
    End(slot, op.op.bytes == bytes ? absl::OkStatus() : LengthError(op.op, rank_, bytes));
    SendMet(src, send_slot);
    return;
  }
  op.state = State::kMet;
  TcpFrame frame = FrameOf(TcpFrameKind::kGrant, send_slot);
  frame.tag = static_cast<uint32_t>(slot);
  outlet_->Send(src, frame);
}

void TcpMailbox::Withdraw() {
  lines_.TakeReceives(lines_.kAllPeers,
                      [this](int slot) { End(slot, WithdrawnError(At(slot).op, rank_)); });
}

void TcpMailbox::Part() {
  Withdraw();
  if (std::exchange(parted_, true)) return;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    DropOffers(peer, /*all=*/false);
    if (outlet_->IsLinked(peer)) TellParted(peer, /*gone=*/false);
    if (peers_[IndexOf(peer)] != Peer::kThere || outlet_->IsGone(peer) ||
        !outlet_->Broken(peer).ok()) {
      EndSends(peer);
    }
  }
}

void TcpMailbox::Leave() {
  parted_ = true;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    outlet_->DropIncoming(peer, number_);
    DropOffers(peer, /*all=*/true);
    if (!outlet_->IsLinked(peer)) continue;
    outlet_->Recall(peer, number_, -1);
    for (Op& op : ops_) {
      if (op.state != State::kGranted || op.op.peer != peer) continue;
      outlet_->Send(peer, FrameOf(TcpFrameKind::kAbort, op.remote));
    }
    TellParted(peer, /*gone=*/true);
    ReturnCredits(peer);
  }
}

void TcpMailbox::TellParted(int dst, bool gone) {
  const uint8_t level = gone ? 2 : 1;
  if (told_[IndexOf(dst)] >= level) return;
  told_[IndexOf(dst)] = level;
  TcpFrame frame = FrameOf(TcpFrameKind::kPart, 0);
  frame.flags = gone ? kGoneFlag : 0;
  outlet_->Send(dst, frame);
}

void TcpMailbox::ReturnCredits(int dst) {
  for (Op& op : ops_) {
    if (op.op.peer == dst && std::exchange(op.has_credit, false)) outlet_->GiveCredit(dst);
  }
}

void TcpMailbox::EndSends(int dst) {
  for (int slot = 0; slot < static_cast<int>(ops_.size()); ++slot) {
    Op& op = At(slot);
    if (op.state != State::kOffered || op.op.peer != dst) continue;
    outlet_->Recall(dst, number_, slot);
    if (std::exchange(op.has_credit, false)) outlet_->GiveCredit(dst);
    End(slot, PartedError(op.op, rank_));
  }
}

}  // namespace sluice
