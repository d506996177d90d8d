// A run of a transfer: how it is started, waited for, and what it reports.
#ifndef SLUICE_RUN_H_
#define SLUICE_RUN_H_

#include <compare>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "sluice/accelerator.h"
#include "sluice/tensor.h"

namespace sluice {

class Session;

struct StartOptions {
  // Report NeedsMemory and TensorDone of this run through PollEvent.
  bool events = false;
  // Destination views without data are supplied later, by Supply. Implies `events`. A window whose
  // tensors lack memory here opens once all earlier ones are done here. NeedsMemory then asks for
  // each of them. Nothing of the window moves before all have been supplied. So this rank needs
  // memory for one window at a time, beside the budget.
  bool late_destinations = false;
  // For Connection::Start: what the caller calls the tensors' content. Ranks are not compared.
  // InvalidArgument, and nothing begins, if it is not above that of the connection's run before, or
  // for Session::Start.
  absl::optional<int64_t> version = absl::nullopt;
  // A stream of the session's accelerator, in whose order the run takes part. The run comes after
  // what the stream holds at Start. Memory that Supply gives is touched after what the stream holds
  // at that call. Work that the stream gets after Wait has returned comes after the run. Work that
  // it gets after PollEvent has returned a TensorDone comes after that tensor. A transport in
  // stream order (NCCL, CUDA IPC) may not have ended either by then. With such a transport the host
  // may use the memory only once it has waited for the stream. An event that nobody has taken holds
  // nothing up. The stream stays until the run is done, and is not being captured before. PollEvent
  // puts waits into it. So does the run's end, which may come on a progress thread.
  // Without a stream, memory is ready when it is given, and complete at TensorDone and after Wait.
  absl::optional<StreamHandle> stream = absl::nullopt;
  // An error that this rank's caller has found in its memory since the memory was bound; else OK.
  // Counts as a wrong view: every rank hears of it, and nothing moves from or to this rank.
  absl::Status refusal = absl::OkStatus();
};

// A run that Session::Start has begun. A small value: copies name the same run. It must not be used
// once its session is gone. A Run() that is made from nothing names no run: its calls return
// InvalidArgument, and IsDone returns true.
//
// Thread: the session's; IsDone may be called from any.
class Run {
 public:
  Run() = default;

  // Polls until this rank's part of the run is done: its sources may change, its destinations are
  // complete. After Cancel: until what the run asked of this rank is done, too. Yields, then sleeps
  // briefly, while nothing moves; with a progress thread, sleeps. How a run ended is known as long
  // as the session lives. Only the newest 256 failures keep their message.
  absl::Status Wait() const;

  // The same for `limit` at most: true if the run is over, and Wait would return OK; an error is
  // that of Wait. False: it is not over yet. Then nothing has changed, and this rank may wait again
  // or do other things meanwhile. But the others hear of it only while it waits or polls, or has a
  // progress thread (SessionOptions::timeout). A limit of zero or less is one look.
  absl::StatusOr<bool> WaitFor(absl::Duration limit) const;

  // True once Wait would not wait. Any thread.
  bool IsDone() const;

  // Destination memory for `tensor` of a run with late_destinations; from Start on, also before
  // NeedsMemory asks. On an error nothing has changed, and memory may be supplied again:
  // InvalidArgument as in Start, or no such tensor; FailedPrecondition: the tensor has memory, or
  // needs none here, or the run is over; what the runtime says, if it cannot mark the run's stream.
  absl::Status Supply(int tensor, const TensorView& dst) const;

  // Collective; does not block. Gives the run up: what other ranks wait for is still carried out,
  // the rest is not, and no memory is waited for. Then Wait returns Cancelled, unless this rank's
  // part was done before, and destinations without a TensorDone are undefined. The other ranks need
  // this one until all agree on what is carried out, also where this rank's part was done before.
  // So go on to poll, or to wait for the run, until IsDone. FailedPrecondition: the run has been
  // cancelled before.
  absl::Status Cancel() const;

  // From 1 on, in the order of Start, equal on all ranks: what errors call it. 0: Run() itself.
  int64_t number() const { return number_; }

  friend auto operator<=>(const Run&, const Run&) = default;
  template <typename Hash>
  friend Hash AbslHashValue(Hash hash, const Run& run) {
    return Hash::combine(std::move(hash), run.session_, run.number_);
  }

 private:
  friend class Session;
  friend class SessionImpl;
  Run(Session* session, int64_t number) : session_(session), number_(number) {}

  Session* session_ = nullptr;
  int64_t number_ = 0;
};

struct Event {
  enum class Kind : uint8_t {
    kNeedsMemory,  // the tensor's destination has to be supplied
    kTensorDone,   // this rank's part of the tensor is done: its destination is complete and may be
                   // taken away, its source may change; of a run in a stream: in that stream
    kFailed,       // the run has failed, or was cancelled: `status` says why
  };
  Kind kind = Kind::kTensorDone;
  Run run;
  int tensor = -1;  // index into the spec's tensors; -1 for kFailed
  absl::Status status;
};

}  // namespace sluice

#endif  // SLUICE_RUN_H_
