// How operations of a transport over UCX end without their messages: withdrawn, parted, cut off.
#include <utility>

#include "transport/op_check.h"
#include "transport/ucx/ucx_transport.h"

namespace sluice {

template <typename Action>
void UcxTransport::ForEach(int rank, Phase phase, const Action& action) {
  for (Slot& slot : slots_) {
    if (slot.phase == phase && slot.op.peer == rank) action(slot);
  }
}

void UcxTransport::Withdraw() {
  const std::lock_guard<std::mutex> lock(hub_->mutex());
  WithdrawNow();
}

void UcxTransport::WithdrawNow() {
  post_->lines.TakeReceives(post_->lines.kAllPeers, [this](int index) {
    Slot& slot = slots_[static_cast<size_t>(index)];
    End(slot, WithdrawnError(slot.op, hub_->rank()));
  });
}

bool UcxTransport::Part() {
  const std::lock_guard<std::mutex> lock(hub_->mutex());
  WithdrawNow();
  if (!std::exchange(parted_, true)) {
    for (int rank = 0; rank < hub_->size(); ++rank) {
      if (rank == hub_->rank()) continue;
      hub_->peer(rank).Connect();
      Tell(rank, {.kind = UcxRecord::Kind::kParted});
      if (post_->parted[static_cast<size_t>(rank)] != 0) SeeParted(rank);
    }
  }
  hub_->Advance();
  TellCutOff();
  for (int rank = 0; rank < hub_->size(); ++rank) {
    const size_t at = static_cast<size_t>(rank);
    if (rank == hub_->rank() || !hub_->peer(rank).failure().ok()) continue;
    if (post_->parted[at] == 0 || heard_[at] == 0) return false;
  }
  return OutstandingNow() == 0;
}

// Whatever it had let go before has been said before: records keep their order.
void UcxTransport::SeeParted(int rank) {
  if (!parted_) return;
  ForEach(rank, Phase::kAnnounced,
          [this](Slot& slot) { End(slot, PartedError(slot.op, hub_->rank())); });
}

void UcxTransport::LosePeer(int rank) {
  const absl::Status failure = hub_->peer(rank).failure();
  ForEach(rank, Phase::kWaiting, [&](Slot& slot) { End(slot, LostError(slot.op, failure)); });
  ForEach(rank, Phase::kAnnounced, [&](Slot& slot) { End(slot, LostError(slot.op, failure)); });
  ForEach(rank, Phase::kFlown, [&](Slot& slot) { End(slot, LostError(slot.op, failure)); });
  ForEach(rank, Phase::kFlying, [&](Slot& slot) {
    slot.failure = LostError(slot.op, failure);
    if (slot.op.kind == TransportOp::Kind::kReceive) hub_->flights().Cancel(slot.flight);
  });
}

// A message that had come in part is in UCX's hands for ever, which writes no more of it.
void UcxTransport::GiveUpPeer(int rank) {
  ForEach(rank, Phase::kFlying, [this](Slot& slot) {
    UcxFlights::Abandon(slot.flight, nullptr);
    slot.flight = nullptr;
    End(slot, std::move(slot.failure));
  });
}

}  // namespace sluice
