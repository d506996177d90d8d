// The carrier's duties beside its steps: room, operations, failures.
#include "session/base/carrier.h"

#include <algorithm>
#include <utility>

#include "tensor/check.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

constexpr size_t kEventBatch = 64;

}  // namespace

Carrier::Carrier(Device* device, std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)),
      in_stream_order_(transport_ != nullptr && transport_->traits().in_stream_order),
      copies_(device, in_stream_order_),
      events_(kEventBatch),
      copied_(Device::kMaxOutstanding) {}

absl::Status Carrier::MakeRoom(const EngineOptions* options, int operations, size_t messages) {
  const EngineOptions& wanted = options != nullptr ? *options : engine_->options();
  if (transport_ != nullptr) {
    SLUICE_RETURN_IF_ERROR(transport_->Reserve(wanted.slots * std::max(1, operations)));
  }
  const size_t slots = static_cast<size_t>(wanted.slots);
  if (options != nullptr) {
    engine_.emplace(*options);
    // A new engine gives the same tickets again.
    held_.assign(slots, Held());
  }
  order_.Reserve(static_cast<size_t>(engine_->options().channels), slots);
  copies_.ReserveWaiting(slots);
  messages_.reserve(messages);
  if (in_stream_order_) endings_.Reserve(slots);
  return absl::OkStatus();
}

StageOperations Carrier::OperationsOf(size_t slot, BatchStage batch_stage) {
  Held& held = held_[slot];
  const uint64_t cookie = CookieOf(slot, held.ticket);
  copies_.Begin(cookie, &held.pending, batch_stage);
  return {cookie, &held.pending, &copies_, &messages_};
}

absl::Status Carrier::Send() {
  if (messages_.empty()) return absl::OkStatus();
  absl::Status status = transport_->Start(messages_);
  messages_.clear();
  return status;
}

absl::StatusOr<bool> Carrier::MarkEndings() {
  if (absl::Status status = endings_.Mark(&copies_); !status.ok()) return status;
  return endings_.all_marked();
}

absl::Status Carrier::Fail(size_t slot, const absl::Status& status) {
  absl::Status explained = Explain(slot, status);
  if (held_[slot].pending == 0) Drop(slot, explained);
  return explained;
}

void Carrier::Poison(const absl::Status& status) {
  if (engine_) engine_->Poison(status);
}

size_t Carrier::Find(uint64_t cookie) const {
  const size_t slot = SlotOf(cookie);
  SLUICE_CHECK(held_[slot].stage != Stage::kWaiting && held_[slot].ticket == TicketOf(cookie),
               "an operation of no bucket");
  return slot;
}

absl::Status Carrier::Explain(size_t slot, const absl::Status& status) const {
  return MakeError(status.code(), "bucket ", held_[slot].id.InWords(), ": ", status);
}

}  // namespace sluice
