// Takes in frames of other ranks: offers, and the bytes of messages.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor/error_text.h"
#include "transport/op_check.h"
#include "transport/tcp/tcp_mailbox.h"

namespace sluice {
namespace {

// Most offers of all ranks together: far beyond what sessions start.
constexpr size_t kMaxOffers = size_t{1} << 22;

absl::Status BreaksRules(const char* what) {
  return absl::InternalError(absl::StrCat("it breaks the rules of links: ", what));
}

}  // namespace

int TcpMailbox::AddOffer(uint32_t tag, const Offer& offer) {
  int index = first_free_offer_;
  if (index >= 0) {
    first_free_offer_ = offers_[IndexOf(index)].next;
  } else {
    index = static_cast<int>(offers_.size());
    offers_.emplace_back();
  }
  offers_[IndexOf(index)] = offer;
  lines_.AddOffer(offer.src, static_cast<int>(tag), index);
  return index;
}

void TcpMailbox::FreeOffer(int index) {
  Offer& offer = offers_[IndexOf(index)];
  if (offer.room >= 0) {
    if (!offer.arrived) {
      outlet_->DropIncoming(offer.src, number_);
      incoming_[IndexOf(offer.src)] = Incoming();
    }
    outlet_->FreeRoom(offer.src, offer.room);
  }
  offer.next = std::exchange(first_free_offer_, index);
}

void TcpMailbox::DropOffers(int src, bool all) {
  lines_.TakeOffers(src, [this](int index) { FreeOffer(index); });
  const Incoming incoming = incoming_[IndexOf(src)];
  if (all && incoming.what == Incoming::What::kOffer) FreeOffer(incoming.index);
}

TcpMailbox::Op* TcpMailbox::Find(int src, uint32_t slot, State state) {
  if (slot >= ops_.size()) return nullptr;
  Op& op = ops_[slot];
  return op.state == state && op.op.peer == src ? &op : nullptr;
}

absl::Status TcpMailbox::OnFrame(int src, const TcpFrame& frame, TcpRows* rows) {
  incoming_[IndexOf(src)] = Incoming();
  switch (frame.kind) {
    case TcpFrameKind::kOffer:
      return OnOffer(src, frame, rows);
    case TcpFrameKind::kData:
      return OnData(src, frame, rows);
    case TcpFrameKind::kGrant:
      return OnGrant(src, frame);
    case TcpFrameKind::kMet:
      return OnMet(src, frame);
    case TcpFrameKind::kAbort:
      return OnAbort(src, frame);
    default:
      OnPart(src, (frame.flags & kGoneFlag) != 0);
      return absl::OkStatus();
  }
}

absl::Status TcpMailbox::OnOffer(int src, const TcpFrame& frame, TcpRows* rows) {
  const bool eager = (frame.flags & kEagerFlag) != 0;
  if (frame.tag > static_cast<uint32_t>(kMaxTransportTag) || frame.bytes > kMaxTransportBytes ||
      frame.length != (eager ? frame.bytes : 0) || frame.length > kEagerBytes) {
    return BreaksRules("an offer");
  }
  if (parted_) {
    // Told again: it may have opened its transport since, and had none to tell of the parting.
    outlet_->Send(src, FrameOf(TcpFrameKind::kPart, 0));
    return absl::OkStatus();
  }
  if (eager) return OnEagerOffer(src, frame, rows);
  if (const std::optional<int> slot = lines_.TakeReceive(src, static_cast<int>(frame.tag))) {
    MeetAtSender(*slot, src, frame.slot, frame.bytes);
    return absl::OkStatus();
  }
  if (first_free_offer_ < 0 && offers_.size() >= kMaxOffers) return BreaksRules("too many offers");
  AddOffer(frame.tag, {frame.bytes, src, frame.slot});
  return absl::OkStatus();
}

absl::Status TcpMailbox::OnEagerOffer(int src, const TcpFrame& frame, TcpRows* rows) {
  Incoming& incoming = incoming_[IndexOf(src)];
  if (const std::optional<int> slot = lines_.TakeReceive(src, static_cast<int>(frame.tag))) {
    Op& op = At(*slot);
    if (op.op.bytes != frame.bytes) {
      End(*slot, LengthError(op.op, rank_, frame.bytes));
      incoming.what = Incoming::What::kLost;
      return absl::OkStatus();
    }
    op.state = State::kMet;
    op.eager = true;
    *rows = RowsOf(op.op);
    incoming = {Incoming::What::kReceive, *slot};
    return absl::OkStatus();
  }
  const int room = outlet_->TakeRoom(src);
  if (room < 0) return BreaksRules("more messages than there is room for");
  rows->data = outlet_->Room(src, room);
  incoming = {Incoming::What::kOffer,
              AddOffer(frame.tag, {frame.bytes, src, frame.slot, room, /*arrived=*/false})};
  return absl::OkStatus();
}

absl::Status TcpMailbox::OnPayload(int src, const TcpFrame& frame) {
  const Incoming incoming = std::exchange(incoming_[IndexOf(src)], Incoming());
  switch (incoming.what) {
    case Incoming::What::kNothing:
      break;
    case Incoming::What::kLost:
      SendMet(src, frame.slot);
      break;
    case Incoming::What::kOffer: {
      Offer& offer = offers_[IndexOf(incoming.index)];
      offer.arrived = true;
      if (offer.receive >= 0) TakeFromRoom(offer.receive, incoming.index);
      break;
    }
    case Incoming::What::kReceive: {
      Op& op = At(incoming.index);
      op.at += frame.length;
      if (op.at == op.op.bytes) End(incoming.index, absl::OkStatus());
      if (op.eager) SendMet(src, frame.slot);
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status TcpMailbox::OnData(int src, const TcpFrame& frame, TcpRows* rows) {
  Op* const op = Find(src, frame.slot, State::kMet);
  if (op == nullptr || op->eager || frame.bytes != op->at || frame.length > op->op.bytes - op->at) {
    return BreaksRules("bytes that nobody has asked for");
  }
  *rows = RowsOf(op->op);
  rows->at = op->at;
  rows->bytes = op->at + frame.length;
  incoming_[IndexOf(src)] = {Incoming::What::kReceive, static_cast<int>(frame.slot)};
  return absl::OkStatus();
}

absl::Status TcpMailbox::OnGrant(int src, const TcpFrame& frame) {
  Op* const op = Find(src, frame.slot, State::kOffered);
  if (op == nullptr || op->eager) {
    if (!parted_) return BreaksRules("a grant of nothing that was offered");
    outlet_->Send(src, FrameOf(TcpFrameKind::kAbort, frame.tag));
    return absl::OkStatus();
  }
  op->state = State::kGranted;
  op->remote = frame.tag;
  outlet_->SendMessage(src, number_, frame.slot);
  return absl::OkStatus();
}

absl::Status TcpMailbox::OnMet(int src, const TcpFrame& frame) {
  Op* const op = Find(src, frame.slot, State::kOffered);
  if (op == nullptr || (op->eager && !op->offer_sent)) {
    return parted_ ? absl::OkStatus() : BreaksRules("a send is met that was not offered");
  }
  if (std::exchange(op->has_credit, false)) outlet_->GiveCredit(src);
  End(static_cast<int>(frame.slot), absl::OkStatus());
  return absl::OkStatus();
}

absl::Status TcpMailbox::OnAbort(int src, const TcpFrame& frame) {
  Op* const op = Find(src, frame.slot, State::kMet);
  if (op == nullptr || op->eager) return absl::OkStatus();
  CutOff(static_cast<int>(frame.slot),
         MakeError(absl::StatusCode::kUnavailable, DescribeOp(op->op, rank_), ": ",
                   RankInWords(src), " has ended its transport before all bytes had come"));
  return absl::OkStatus();
}

void TcpMailbox::OnPart(int src, bool gone) {
  Peer& peer = peers_[IndexOf(src)];
  if (peer != Peer::kGone) peer = gone ? Peer::kGone : Peer::kParted;
  // A rank that parts has emptied its room, and puts nothing there any more.
  ReturnCredits(src);
  if (gone) DropOffers(src, /*all=*/false);
  if (parted_) EndSends(src);
}

void TcpMailbox::OnSent(const TcpFrame& frame, uint32_t owner) {
  Op& op = At(static_cast<int>(owner));
  if (frame.kind == TcpFrameKind::kOffer) {
    op.offer_sent = true;
  } else if (op.state == State::kGranted && frame.bytes + frame.length == op.op.bytes) {
    End(static_cast<int>(owner), absl::OkStatus());
  }
}

bool TcpMailbox::NextPiece(uint32_t owner, TcpFrame* frame, TcpRows* rows) {
  Op& op = At(static_cast<int>(owner));
  *frame = FrameOf(TcpFrameKind::kData, op.remote);
  frame->bytes = op.at;
  frame->length = std::min(kPieceBytes, op.op.bytes - op.at);
  *rows = RowsOf(op.op);
  rows->at = op.at;
  op.at += frame->length;
  rows->bytes = op.at;
  return op.at == op.op.bytes;
}

void TcpMailbox::OnBroken(int peer, const absl::Status& why) {
  DropOffers(peer, /*all=*/true);
  incoming_[IndexOf(peer)] = Incoming();
  lines_.Forget(peer);
  for (int slot = 0; slot < static_cast<int>(ops_.size()); ++slot) {
    const Op& op = At(slot);
    if (op.op.peer != peer || op.state == State::kFree || op.state == State::kEnded ||
        op.state == State::kCutOff) {
      continue;
    }
    End(slot, MakeError(absl::StatusCode::kUnavailable, DescribeOp(op.op, rank_), ": ", why));
  }
}

void TcpMailbox::OnLeft(int peer) {
  peers_[IndexOf(peer)] = Peer::kGone;
  DropOffers(peer, /*all=*/true);
  incoming_[IndexOf(peer)] = Incoming();
  for (int slot = 0; slot < static_cast<int>(ops_.size()); ++slot) {
    const Op& op = At(slot);
    if (op.op.peer != peer || (op.state != State::kGranted && op.state != State::kMet)) continue;
    CutOff(slot, MakeError(absl::StatusCode::kUnavailable, DescribeOp(op.op, rank_), ": ",
                           RankInWords(peer), " has left before all bytes had gone"));
  }
  if (parted_) EndSends(peer);
}

}  // namespace sluice
