// The loop between an engine, a transport and a device, with what is held in each slot. The runners
// of transfers and of shards share it. Makes no decisions of its own.
#ifndef SLUICE_SRC_SESSION_BASE_CARRIER_H_
#define SLUICE_SRC_SESSION_BASE_CARRIER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "engine/engine.h"
#include "engine/move_order.h"
#include "session/base/copy_queue.h"
#include "session/base/ending_line.h"
#include "session/base/operation_cookie.h"
#include "session/base/stage_operations.h"
#include "sluice/transport.h"

namespace sluice {

// A runner owns a carrier, and calls Poll with a handler: itself. The handler knows what buckets
// are. The carrier counts their operations, and tells the engine what has ended.
//
// Only Poll and Settle call the handler. They are templates, so that an operation costs no virtual
// call (session/base/carrier_steps.h). An error of a function ends the step, and Poll fails with
// it.
//
//   absl::StatusOr<bool> PollOthers();
//     Looks what else has ended: reads, places in streams. True: something has.
//   absl::StatusOr<Carrier::Fed> Feed();
//     Submits to the engine what there is.
//   Carrier::Admission Admit(size_t slot, const Command&);
//     A bucket has got its slot.
//   bool Copies(size_t slot, Stage);
//     Asked before Begin: false if it adds no copies, or is a move.
//   absl::Status Begin(size_t slot, Stage);
//     Adds the first operations of the stage.
//   absl::Status Continue(size_t slot, Stage);
//     All operations that were added have ended.
//   void StageOver(size_t slot, Stage, bool last);
//     All of the stage has been carried out.
//   absl::Status BucketOver(size_t slot);
//     The slot is free.
//   absl::Status Flush();
//     Starts what was added: Send, at least.
//
// Begin and Continue call EndStage where the stage has no more to do, and Fail where it cannot go
// on. They may also leave it as it is: the runner then does one of these later.
//
// Stream order. A transport in stream order tells of operations as soon as whatever the device does
// later finds them done. Then StageOver comes when all of the last stage has been handed out. A
// mark among the copies says when the device has come past it, and only then is the slot free:
// BucketOver comes with the mark. Nobody else has to know, whichever runner it is.
//
// Thread: one. Lifetime: `device` must outlive the carrier; what operations use must stay while
// has_operations, also beyond the carrier's end. Errors: the first failure of the transport, the
// device or the handler, with the bucket's name where it is a bucket's. It poisons the engine:
// nothing new is started, and what is under way ends through Settle.
//
// Nothing is allocated but in MakeRoom, and for texts.
class Carrier {
 public:
  struct Admission {
    StageSet stages = 0;
    int channel = 0;  // the engine's number
  };
  // kLeave: what has ended is to be seen before anything else begins, so the step ends here.
  enum class Fed : uint8_t { kNothing, kSome, kLeave };

  // `transport` may be null, where nothing crosses.
  Carrier(Device* device, std::unique_ptr<Transport> transport);

  // Makes room for `operations` messages of each bucket at once, and for `messages` to be added
  // between two flushes. `options`: of a new engine; null keeps the one there is. The transport's
  // error changes nothing here. Not while anything is held.
  absl::Status MakeRoom(const EngineOptions* options, int operations, size_t messages);

  // Carries on as far as it goes without waiting, some steps at most; true if anything moved.
  template <class Handler>
  absl::StatusOr<bool> Poll(Handler* handler);
  // Poll is to return after this step, so that its caller sees what has ended.
  void LeaveAfterStep() { leaves_ = true; }

  // Takes operations of the slot's stage; the copies begin a batch of `batch_stage`.
  StageOperations OperationsOf(size_t slot, BatchStage batch_stage = BatchStage::kAny);
  // Starts the messages that were added.
  absl::Status Send();
  // Puts a mark behind what has ended in stream order; false if there are too many for another.
  absl::StatusOr<bool> MarkEndings();

  // The slot's stage is over.
  template <class Handler>
  absl::Status EndStage(size_t slot, Handler* handler);
  // The slot's stage cannot go on; returns `status` with the bucket's name. The bucket ends with
  // the operations of the stage that are under way.
  absl::Status Fail(size_t slot, const absl::Status& status);
  // The same for a stage with nothing under way, and for a status that names enough.
  void Drop(size_t slot, const absl::Status& status) { engine_->Fail(held_[slot].ticket, status); }

  // Fails everything from outside. A stall is described before, not after.
  void Poison(const absl::Status& status);
  // After a failure, or the end: takes in what has ended; true once nothing is under way any more.
  // `parts`: parts from the other ranks, and takes back what can be.
  template <class Handler>
  bool Settle(bool parts, Handler* handler);

  // True if the transport is to be looked at after the slot's copies, before others begin. The
  // device of a host copies within Start, and messages make progress only when the transport is
  // polled. Without a look, a rendezvous would wait for a batch of copies. And what was filled can
  // be sent. The slot's bucket may have ended meanwhile.
  bool IsLookDue(size_t slot) const {
    const Held& held = held_[slot];
    const bool moves_next = held.stage == Stage::kFilling && (held.stages & kStageMove) != 0;
    return moves_next || outstanding_messages() > 0;
  }

  Engine* engine() { return engine_ ? &*engine_ : nullptr; }  // null before MakeRoom
  const Engine* engine() const { return engine_ ? &*engine_ : nullptr; }
  Transport* transport() const { return transport_.get(); }
  CopyQueue* copies() { return &copies_; }
  MoveOrder* order() { return &order_; }
  std::vector<TransportOp>* messages() { return &messages_; }  // added, and not yet started
  bool in_stream_order() const { return in_stream_order_; }

  Stage stage(size_t slot) const { return held_[slot].stage; }  // kWaiting: it holds no bucket
  int pending(size_t slot) const { return held_[slot].pending; }
  int marks() const { return endings_.marks(); }
  // The engine has no more commands for this step.
  bool commanded_all() const { return commanded_all_; }
  int outstanding_messages() const { return transport_ == nullptr ? 0 : transport_->outstanding(); }
  int outstanding_copies() const { return copies_.outstanding(); }
  bool has_operations() const { return outstanding_messages() > 0 || outstanding_copies() > 0; }

 private:
  struct Held {
    BucketId id;
    Ticket ticket = 0;
    Stage stage = Stage::kWaiting;
    StageSet stages = 0;
    int channel = 0;
    int pending = 0;  // operations under way
  };

  template <class Handler>
  absl::StatusOr<bool> Step(Handler* handler);
  template <class Handler>
  absl::StatusOr<bool> PollTransport(Handler* handler);
  template <class Handler>
  absl::StatusOr<bool> PollDevice(Handler* handler);
  template <class Handler>
  void TakeOperation(uint64_t cookie, const absl::Status& status, Handler* handler,
                     absl::Status* failure);
  template <class Handler>
  void TakeMark(Handler* handler, absl::Status* failure);
  template <class Handler>
  absl::Status EndBucket(size_t slot, Handler* handler);
  template <class Handler>
  absl::StatusOr<bool> CarryOutCommands(Handler* handler);
  template <class Handler>
  absl::Status CarryOut(const Command& command, Handler* handler);
  size_t Find(uint64_t cookie) const;
  absl::Status Explain(size_t slot, const absl::Status& status) const;

  // Steps of one Poll, so that it returns to the caller now and then.
  static constexpr int kStepsPerPoll = 32;

  const std::unique_ptr<Transport> transport_;
  const bool in_stream_order_;
  CopyQueue copies_;
  std::optional<Engine> engine_;
  MoveOrder order_;
  std::vector<Held> held_;  // by slot
  std::vector<TransportOp> messages_;
  EndingLine endings_;
  bool commanded_all_ = false;
  bool leaves_ = false;
  bool finishes_ = false;  // after a failure: the device has been asked to say when it is done
  std::vector<TransportEvent> events_;
  std::vector<uint64_t> copied_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_CARRIER_H_
