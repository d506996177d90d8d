// Operations of one transport: what is said of them, and how they end.
#include "transport/ucx/ucx_transport.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/op_check.h"

namespace sluice {

UcxTransport::UcxTransport(std::shared_ptr<UcxHub> hub, int number, UcxPost* post)
    : Transport({.name = "ucx"}),
      hub_(std::move(hub)),
      number_(number),
      post_(post),
      heard_(static_cast<size_t>(hub_->size())) {}

UcxTransport::~UcxTransport() {
  const std::lock_guard<std::mutex> lock(hub_->mutex());
  auto kept = std::make_shared<std::vector<std::shared_ptr<const void>>>(TakeKept());
  for (Slot& slot : slots_) {
    if (slot.phase != Phase::kFlying) continue;
    UcxFlights::Abandon(slot.flight, kept);
    if (slot.op.kind == TransportOp::Kind::kSend) continue;
    hub_->flights().Cancel(slot.flight);
    Tell(slot.op.peer, {.kind = UcxRecord::Kind::kRefused, .send = slot.send});
  }
  // Messages that wait here are forgotten, and other ranks need not wait for this one.
  for (int rank = 0; !parted_ && rank < hub_->size(); ++rank) {
    if (hub_->peer(rank).endpoint() == nullptr) continue;
    Tell(rank, {.kind = UcxRecord::Kind::kParted, .bytes = 1});
  }
  hub_->CloseTransport(number_);
  hub_->Attend();
}

absl::Status UcxTransport::Reserve(int capacity) {
  const std::lock_guard<std::mutex> lock(hub_->mutex());
  SLUICE_CHECK(OutstandingNow() == 0, "Reserve with operations outstanding");
  if (capacity > UcxPost::kMaxAnnounced) {
    return absl::ResourceExhaustedError(absl::StrCat("a transport over UCX has room for ",
                                                     UcxPost::kMaxAnnounced, " operations, and ",
                                                     capacity, " were asked"));
  }
  for (int slot = static_cast<int>(slots_.size()); slot < capacity; ++slot) free_.push_back(slot);
  if (static_cast<size_t>(capacity) <= slots_.size()) return absl::OkStatus();
  slots_.resize(static_cast<size_t>(capacity));
  events_.resize(slots_.size());
  post_->lines.Reserve(slots_.size(), post_->parted.size());
  first_ended_ = 0;
  return absl::OkStatus();
}

absl::Status UcxTransport::Start(absl::Span<const TransportOp> ops) {
  const std::lock_guard<std::mutex> lock(hub_->mutex());
  CheckOps(ops, hub_->rank(), hub_->size(), traits());
  const int capacity = static_cast<int>(slots_.size());
  SLUICE_RETURN_IF_ERROR(CheckCapacity(ops.size(), OutstandingNow(), capacity));
  for (const TransportOp& op : ops) StartOne(op);
  hub_->Attend();
  return absl::OkStatus();
}

void UcxTransport::StartOne(const TransportOp& op) {
  const int index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[static_cast<size_t>(index)];
  slot.op = op;
  ++slot.uses;
  slot.failure = absl::OkStatus();
  slot.landed = false;
  ++active_;
  UcxPeer& peer = hub_->peer(op.peer);
  peer.Connect();
  if (!peer.failure().ok()) {
    slot.phase = Phase::kWaiting;
    return End(slot, LostError(op, peer.failure()));
  }
  if (op.kind == TransportOp::Kind::kSend) {
    slot.phase = Phase::kAnnounced;
    return Tell(op.peer, {.kind = UcxRecord::Kind::kAnnounce,
                          .tag = static_cast<uint32_t>(op.tag),
                          .bytes = op.bytes,
                          .send = NameOf(index)});
  }
  slot.phase = Phase::kWaiting;
  const std::optional<UcxAnnounced> message = post_->lines.TakeOffer(op.peer, op.tag);
  if (!message) return post_->lines.AddReceive(op.peer, op.tag, index);
  Meet(index, *message);
}

void UcxTransport::Tell(int rank, UcxRecord record) {
  record.transport = static_cast<uint16_t>(number_);
  hub_->peer(rank).Tell(record);
}

void UcxTransport::Meet(int index, const UcxAnnounced& message) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  const int src = slot.op.peer;
  if (message.bytes != slot.op.bytes || message.bytes == 0) {
    Tell(src, {.kind = UcxRecord::Kind::kDone, .send = message.send});
    return End(slot, message.bytes == slot.op.bytes
                         ? absl::OkStatus()
                         : LengthError(slot.op, hub_->rank(), message.bytes));
  }
  const uint64_t data = hub_->NextData();
  slot.phase = Phase::kFlying;
  slot.send = message.send;
  slot.flight = hub_->flights().Receive(this, index, slot.op, data);
  if (slot.flight->request == nullptr) return;  // UCX refuses: it has landed with an error
  Tell(
      src,
      {.kind = UcxRecord::Kind::kGo, .send = message.send, .receive = NameOf(index), .data = data});
}

UcxTransport::Slot* UcxTransport::Find(uint64_t name, TransportOp::Kind kind, int peer) {
  const uint64_t index = name & UINT32_MAX;
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  const bool same = slot.uses == name >> 32 && slot.op.kind == kind && slot.op.peer == peer;
  return same && slot.phase != Phase::kFree ? &slot : nullptr;
}

bool UcxTransport::Go(int src, const UcxRecord& record) {
  Slot* const slot = Find(record.send, TransportOp::Kind::kSend, src);
  UcxPeer& peer = hub_->peer(src);
  if (slot == nullptr || slot->phase != Phase::kAnnounced || peer.endpoint() == nullptr) {
    return false;
  }
  slot->phase = Phase::kFlying;
  slot->flight = hub_->flights().Send(this, IndexOf(*slot), slot->op, peer.endpoint(), record.data);
  return true;
}

void UcxTransport::EndSend(int src, const UcxRecord& record) {
  Slot* const slot = Find(record.send, TransportOp::Kind::kSend, src);
  if (slot == nullptr) return;
  if (record.kind == UcxRecord::Kind::kRefused) {
    slot->failure = MakeError(absl::StatusCode::kUnavailable, DescribeOp(slot->op, hub_->rank()),
                              ": its receiver has not got all of it");
  }
  slot->landed = slot->failure.ok();
  // A send that UCX still reads ends when it has landed here as well.
  if (slot->phase != Phase::kFlying) End(*slot, std::move(slot->failure));
}

void UcxTransport::Lose(int src, const UcxRecord& record) {
  Slot* const slot = Find(record.receive, TransportOp::Kind::kReceive, src);
  if (slot == nullptr || slot->phase != Phase::kFlying) return;
  slot->failure = MakeError(absl::StatusCode::kUnavailable, DescribeOp(slot->op, hub_->rank()),
                            ": its sender's transport has ended");
  hub_->flights().Cancel(slot->flight);
}

void UcxTransport::Land(const UcxFlight& flight) {
  Slot& slot = slots_[static_cast<size_t>(flight.slot)];
  const TransportOp& op = slot.op;
  const bool send = op.kind == TransportOp::Kind::kSend;
  slot.flight = nullptr;
  absl::Status status = std::move(slot.failure);
  slot.failure = absl::OkStatus();
  if (status.ok() && flight.status == UCS_OK && send && !slot.landed) {
    slot.phase = Phase::kFlown;
    return;
  }
  if (status.ok() && (flight.status == UCS_ERR_MESSAGE_TRUNCATED ||
                      (flight.status == UCS_OK && !send && flight.came_bytes != op.bytes))) {
    status = LengthError(op, hub_->rank(), flight.came_bytes);
  } else if (status.ok() && flight.status != UCS_OK) {
    const absl::Status& lost = hub_->peer(op.peer).failure();
    status = lost.ok() ? LostError(op, hub_->library().Error(flight.status, "it has failed"))
                       : LostError(op, lost);
  }
  if (!send) {
    Tell(op.peer, {.kind = status.ok() ? UcxRecord::Kind::kLanded : UcxRecord::Kind::kRefused,
                   .send = slot.send});
  }
  End(slot, std::move(status));
}

void UcxTransport::End(Slot& slot, absl::Status status) {
  --active_;
  slot.phase = Phase::kFree;
  free_.push_back(IndexOf(slot));
  if (!parted_ && absl::IsUnavailable(status)) {
    cut_off_.Hold({slot.op.cookie, std::move(status)});
  } else {
    AddEvent({slot.op.cookie, std::move(status)});
  }
}

void UcxTransport::AddEvent(TransportEvent event) {
  events_[static_cast<size_t>(first_ended_ + ended_) % events_.size()] = std::move(event);
  ++ended_;
}

void UcxTransport::TellCutOff() {
  cut_off_.Release(parted_, [this](TransportEvent event) { AddEvent(std::move(event)); });
}

absl::Status UcxTransport::LostError(const TransportOp& op, const absl::Status& why) const {
  return MakeError(absl::StatusCode::kUnavailable, DescribeOp(op, hub_->rank()), ": ", why);
}

absl::StatusOr<int> UcxTransport::Poll(absl::Span<TransportEvent> events) {
  const std::lock_guard<std::mutex> lock(hub_->mutex());
  if (ended_ == 0) hub_->Advance();
  TellCutOff();
  const int count = std::min(ended_, static_cast<int>(events.size()));
  for (int i = 0; i < count; ++i) {
    events[static_cast<size_t>(i)] = std::move(events_[static_cast<size_t>(first_ended_)]);
    first_ended_ = (first_ended_ + 1) % static_cast<int>(events_.size());
  }
  ended_ -= count;
  return count;
}

int UcxTransport::outstanding() const {
  const std::lock_guard<std::mutex> lock(hub_->mutex());
  return OutstandingNow();
}

}  // namespace sluice
