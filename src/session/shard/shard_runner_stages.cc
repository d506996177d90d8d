// The stages of pieces, and what holds them back: memory, the first item.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "session/base/carrier_steps.h"
#include "session/shard/shard_runner.h"
#include "session/shard/stage_trace.h"

namespace sluice {
namespace {

TraceKind KindOf(Stage stage) {
  return stage == Stage::kFilling  ? TraceKind::kStorageRead
         : stage == Stage::kMoving ? TraceKind::kExchange
                                   : TraceKind::kDeviceCopy;
}

}  // namespace

Carrier::Admission ShardRunner::Admit(size_t slot, const Command& command) {
  Held& held = held_[slot];
  held = {.piece = PieceOf(command.cookie), .data = BlockOf(slot)};
  if (const WriteOp write = WriteOf(slot); write.bytes > 0) {
    held.data += write.offset % options_.write_alignment;
  }
  held.piece.begin_ns = MonotonicNs();
  return {held.piece.stages, held.piece.channel};
}

bool ShardRunner::Copies(size_t slot, Stage stage) const {
  return stage == Stage::kDraining ||
         (stage == Stage::kFilling && held_[slot].piece.read.bytes == 0);
}

absl::Status ShardRunner::Begin(size_t slot, Stage stage) {
  Held& held = held_[slot];
  held.begin_ns = MonotonicNs();
  switch (stage) {
    case Stage::kFilling:
      return BeginFill(slot);
    case Stage::kMoving: {
      // Receives wait only for what is sent before them in their channel.
      const bool receives = (held.piece.stages & kStageFill) == 0;
      Busy(held.begin_ns);
      const bool may_begin = receives || head_start_.MaySend(held.piece.index, held.begin_ns);
      if (may_begin && carrier_.order()->MayBegin(slot)) return BeginMove(slot);
      parked_.push_back(slot);
      return absl::OkStatus();
    }
    default:
      work_->Arrived(held.piece);
      if (work_->MayDrain(held.piece)) return BeginDrain(slot);
      drains_.push_back(slot);
      return absl::OkStatus();
  }
}

absl::Status ShardRunner::BeginFill(size_t slot) {
  const Held& held = held_[slot];
  if (held.piece.read.bytes == 0) {
    Busy(held.begin_ns);
    return BeginCopies(slot, Stage::kFilling);
  }
  ReadOrder order = held.piece.read;
  order.slot = static_cast<int>(slot);
  order.aside = read_ahead_.SharesCopies() || aside_;
  if (held.piece.group >= 0) {
    grouped_.Add(held.piece.group, order);
    return absl::OkStatus();
  }
  Busy(held.begin_ns);
  reads_.Order(order, held.begin_ns);
  return absl::OkStatus();
}

// Begins the copies that end a fill, or those of a drain.
absl::Status ShardRunner::BeginCopies(size_t slot, Stage stage) {
  Held& held = held_[slot];
  CopyQueue* const copies = carrier_.OperationsOf(slot).copies;
  const absl::StatusOr<bool> room = copies->HasRoom();
  if (!room.ok()) return carrier_.Fail(slot, room.status());
  held.awaits_room = !*room;
  if (held.awaits_room) {
    copies->AwaitRoom();
    return absl::OkStatus();
  }
  absl::Status status = stage == Stage::kFilling ? work_->Fill(held.piece, held.data, copies)
                                                 : work_->Drain(held.piece, held.data, copies);
  if (status.ok()) status = copies->Flush();
  if (!status.ok()) return carrier_.Fail(slot, status);
  return carrier_.pending(slot) > 0 ? absl::OkStatus() : CopiesOver(slot, stage);
}

WriteOp ShardRunner::WriteOf(size_t slot) const {
  return options_.sink == nullptr ? WriteOp() : work_->WriteOf(held_[slot].piece);
}

absl::Status ShardRunner::CopiesOver(size_t slot, Stage stage) {
  Held& held = held_[slot];
  WriteOp write = stage == Stage::kDraining ? WriteOf(slot) : WriteOp();
  if (write.bytes == 0) return carrier_.EndStage(slot, this);
  const int64_t now_ns = MonotonicNs();
  times_.copy_ns += now_ns - held.begin_ns;
  held.begin_ns = now_ns;
  write.data = held.data;
  write.cookie = slot;
  const absl::Status status = options_.sink->Begin(write);
  return status.ok() ? status : carrier_.Fail(slot, status);
}

absl::Status ShardRunner::BeginMove(size_t slot) {
  const StageOperations to = carrier_.OperationsOf(slot);
  const size_t room = to.messages->capacity() - to.messages->size();
  absl::Status status = carrier_.order()->Begin(slot, 1);
  if (status.ok() && room < static_cast<size_t>(options_.operations_max)) status = Flush();
  if (!status.ok()) {
    carrier_.Drop(slot, status);
    return status;
  }
  const size_t before = to.messages->size();
  work_->AddMessages(held_[slot].piece, held_[slot].data, to.cookie, to.messages);
  *to.pending = static_cast<int>(to.messages->size() - before);
  return *to.pending > 0 ? absl::OkStatus() : carrier_.EndStage(slot, this);
}

absl::Status ShardRunner::BeginDrain(size_t slot) {
  Held& held = held_[slot];
  held.begin_ns = MonotonicNs();
  Busy(held.begin_ns);
  if (held.lender != nullptr) {
    if (!work_->KeepLent(held.piece, held.data, held.lender)) {
      return BeginCopies(slot, Stage::kDraining);
    }
    held.lender = nullptr;  // the work's own from now on
    return carrier_.EndStage(slot, this);
  }
  const int block = reads_.BlockNumberOf(static_cast<int>(slot));
  const int given = work_->KeepBlock(held.piece, held.data, BlockOf(slot), block);
  if (given == ShardWork::kNoBlock) return BeginCopies(slot, Stage::kDraining);
  reads_.SwapBlock(static_cast<int>(slot), given);
  return carrier_.EndStage(slot, this);
}

absl::Status ShardRunner::Continue(size_t slot, Stage stage) {
  return held_[slot].awaits_room ? BeginCopies(slot, stage) : CopiesOver(slot, stage);
}

void ShardRunner::StageOver(size_t slot, Stage stage, bool) {
  const Held& held = held_[slot];
  const int64_t now_ns = MonotonicNs();
  (stage == Stage::kFilling  ? times_.read_ns
   : stage == Stage::kMoving ? times_.exchange_ns
   : WriteOf(slot).bytes > 0 ? times_.write_ns
                             : times_.copy_ns) += now_ns - held.begin_ns;
  Idle(now_ns);
  if (options_.trace != nullptr) {
    options_.trace->Stage(KindOf(stage), slot, held.piece, held.begin_ns, now_ns);
  }
}

absl::Status ShardRunner::BucketOver(size_t slot) {
  Held& held = held_[slot];
  absl::Status status;
  if (held.lender != nullptr) {  // copied from: were the bytes there until now?
    status = held.lender->Check(held.piece.read.offset + held.piece.read.bytes);
  }
  if (status.ok()) status = work_->Done(held.piece, held.data);
  held.lender = nullptr;
  head_start_.Ended(held.piece.index);
  // A caller that waits for the bucket should see its end before the next step.
  carrier_.LeaveAfterStep();
  return status;
}

absl::StatusOr<bool> ShardRunner::PollDrains() {
  if (drains_.empty()) return false;
  // Work that storage and the network can already do should not wait for a copy.
  if (absl::Status status = Flush(); !status.ok()) return status;
  const int64_t batches = carrier_.copies()->begun();
  size_t kept = 0;
  bool any = false;
  bool looks = false;  // at the transport, before more is copied
  for (size_t i = 0; i < drains_.size(); ++i) {
    const size_t slot = drains_[i];
    if (looks || !work_->MayDrain(held_[slot].piece)) {
      drains_[kept++] = slot;
      continue;
    }
    any = true;
    if (absl::Status status = BeginDrain(slot); !status.ok()) {
      drains_.erase(drains_.begin() + static_cast<ptrdiff_t>(kept),
                    drains_.begin() + static_cast<ptrdiff_t>(i) + 1);
      return status;
    }
    looks = carrier_.copies()->begun() > batches && carrier_.IsLookDue(slot);
  }
  drains_.resize(kept);
  return any;
}

absl::StatusOr<bool> ShardRunner::PollParked() {
  if (parked_.empty()) return false;
  // The first one waits for nothing else. Whatever the others wait for is parked before them.
  if (!head_start_.MaySend(held_[parked_.front()].piece.index, MonotonicNs())) return false;
  for (size_t i = 0; i < parked_.size(); ++i) {
    if (absl::Status status = BeginMove(parked_[i]); !status.ok()) {
      parked_.erase(parked_.begin(), parked_.begin() + static_cast<ptrdiff_t>(i) + 1);
      return status;
    }
  }
  parked_.clear();
  return true;
}

}  // namespace sluice
