// The steps of a carrier, for the files that call Poll, Settle or EndStage of theirs.
#ifndef SLUICE_SRC_SESSION_BASE_CARRIER_STEPS_H_
#define SLUICE_SRC_SESSION_BASE_CARRIER_STEPS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/engine.h"
#include "session/base/carrier.h"
#include "session/base/operation_cookie.h"
#include "sluice/transport.h"

namespace sluice {

template <class Handler>
absl::StatusOr<bool> Carrier::Poll(Handler* handler) {
  if (!engine_->status().ok()) return engine_->status();
  bool moved = false;
  for (int step = 0; step < kStepsPerPoll; ++step) {
    leaves_ = false;
    const absl::StatusOr<bool> stepped = Step(handler);
    if (!stepped.ok()) {
      engine_->Poison(stepped.status());
      return stepped.status();
    }
    if (!*stepped) break;
    moved = true;
    if (leaves_) break;
  }
  return moved;
}

template <class Handler>
absl::StatusOr<bool> Carrier::Step(Handler* handler) {
  commanded_all_ = false;
  absl::StatusOr<bool> others = handler->PollOthers();
  if (!others.ok()) return others;
  absl::StatusOr<bool> crossed = PollTransport(handler);
  if (!crossed.ok()) return crossed;
  absl::StatusOr<bool> copied = PollDevice(handler);
  if (!copied.ok()) return copied;
  const absl::StatusOr<Fed> fed = handler->Feed();
  if (!fed.ok()) return fed.status();
  if (*fed == Fed::kLeave) return true;
  absl::StatusOr<bool> commanded = CarryOutCommands(handler);
  if (!commanded.ok()) return commanded;
  if (absl::Status status = handler->Flush(); !status.ok()) return status;
  if (absl::Status status = endings_.Mark(&copies_); !status.ok()) return status;
  return *others || *crossed || *copied || *fed == Fed::kSome || *commanded;
}

// Stops after a command that copies, where a look at the transport is due (IsLookDue). Most moves,
// reads and kept blocks copy nothing: they take no time, and go out with one flush.
template <class Handler>
absl::StatusOr<bool> Carrier::CarryOutCommands(Handler* handler) {
  const int64_t batches = copies_.begun();
  bool commanded = false;
  Command command;
  while (true) {
    commanded_all_ = !engine_->Next(&command);
    if (commanded_all_) break;
    commanded = true;
    if (absl::Status status = CarryOut(command, handler); !status.ok()) return status;
    if (copies_.begun() > batches && IsLookDue(static_cast<size_t>(command.slot))) break;
  }
  return commanded;
}

template <class Handler>
absl::Status Carrier::CarryOut(const Command& command, Handler* handler) {
  const size_t slot = static_cast<size_t>(command.slot);
  Held& held = held_[slot];
  if (held.stage == Stage::kWaiting) {
    const Admission admission = handler->Admit(slot, command);
    held = {.id = command.id,
            .ticket = command.ticket,
            .stages = admission.stages,
            .channel = admission.channel};
  }
  held.stage = command.stage;
  absl::Status status;
  if (command.stage == Stage::kMoving) status = order_.Add(slot, held.channel, held.id);
  // Messages that can already cross should not wait for a copy.
  if (handler->Copies(slot, command.stage)) status = handler->Flush();
  if (!status.ok()) {
    Drop(slot, status);
    return status;
  }
  return handler->Begin(slot, command.stage);
}

template <class Handler>
absl::Status Carrier::EndStage(size_t slot, Handler* handler) {
  Held& held = held_[slot];
  const Stage stage = held.stage;
  const bool last = NextStage(stage, held.stages) == Stage::kDone;
  if (stage == Stage::kMoving) order_.End(slot);
  if (last && in_stream_order_) {
    held.stage = Stage::kDone;
    handler->StageOver(slot, stage, last);
    endings_.Add(slot);
    return absl::OkStatus();
  }
  engine_->Finish(held.ticket);
  handler->StageOver(slot, stage, last);
  return last ? EndBucket(slot, handler) : absl::OkStatus();
}

template <class Handler>
absl::Status Carrier::EndBucket(size_t slot, Handler* handler) {
  held_[slot].stage = Stage::kWaiting;
  const absl::Status status = handler->BucketOver(slot);
  return status.ok() ? status : Explain(slot, status);
}

template <class Handler>
absl::StatusOr<bool> Carrier::PollTransport(Handler* handler) {
  // Operations that have been handed out in stream order may still fail.
  if (outstanding_messages() == 0 && endings_.marks() == 0) return false;
  const absl::StatusOr<int> count = transport_->Poll(absl::MakeSpan(events_));
  if (!count.ok()) return count.status();
  absl::Status failure;
  for (int i = 0; i < *count; ++i) {
    const TransportEvent& event = events_[static_cast<size_t>(i)];
    TakeOperation(event.cookie, event.status, handler, &failure);
  }
  if (!failure.ok()) return failure;
  return *count > 0;
}

template <class Handler>
absl::StatusOr<bool> Carrier::PollDevice(Handler* handler) {
  if (copies_.outstanding() == 0) return false;
  const absl::StatusOr<int> count = copies_.Poll(absl::MakeSpan(copied_));
  if (!count.ok()) return count.status();
  absl::Status failure;
  for (int i = 0; i < *count; ++i) {
    const uint64_t cookie = copied_[static_cast<size_t>(i)];
    if (cookie == kMarkCookie) {
      TakeMark(handler, &failure);
    } else {
      TakeOperation(cookie, absl::OkStatus(), handler, &failure);
    }
  }
  if (!failure.ok()) return failure;
  return *count > 0;
}

template <class Handler>
void Carrier::TakeOperation(uint64_t cookie, const absl::Status& status, Handler* handler,
                            absl::Status* failure) {
  const size_t slot = Find(cookie);
  Held& held = held_[slot];
  if (!status.ok()) failure->Update(Explain(slot, status));
  if (--held.pending > 0) return;
  failure->Update(engine_->status());
  if (!failure->ok()) return Drop(slot, *failure);
  failure->Update(handler->Continue(slot, held.stage));
}

template <class Handler>
void Carrier::TakeMark(Handler* handler, absl::Status* failure) {
  // An operation that has failed on the network is not done, wherever the device is.
  failure->Update(transport_->Poll({}).status());
  failure->Update(engine_->status());
  for (const size_t slot : endings_.First()) {
    if (!failure->ok()) {
      Drop(slot, *failure);
      continue;
    }
    engine_->Finish(held_[slot].ticket);
    failure->Update(EndBucket(slot, handler));
  }
  endings_.DropFirst();
}

template <class Handler>
bool Carrier::Settle(bool parts, Handler* handler) {
  const bool parted = !parts || transport_ == nullptr || transport_->Part();
  // Errors of what is taken back change nothing: there is a failure already.
  if (outstanding_messages() > 0) static_cast<void>(PollTransport(handler));
  // Operations in the stream still use memory, though they count as done.
  if (in_stream_order_ && !finishes_ && outstanding_messages() == 0) {
    finishes_ = true;
    copies_.Finish().IgnoreError();
  }
  if (copies_.outstanding() > 0) static_cast<void>(PollDevice(handler));
  return parted && !has_operations();
}

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_CARRIER_STEPS_H_
