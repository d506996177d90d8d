// Moves tensors between meshes, and data shards from storage: transfers are compiled once and run
// many times, streams are opened and consumed.
#ifndef SLUICE_SESSION_H_
#define SLUICE_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "sluice/accelerator.h"
#include "sluice/checkpoint.h"
#include "sluice/fabric.h"
#include "sluice/stream.h"
#include "sluice/tensor.h"
#include "sluice/trace.h"
#include "sluice/transfer.h"

namespace sluice {

// Everything here must be equal on all ranks, unless it says otherwise; Create checks it.
struct SessionOptions {
  // Most bytes of one bucket on the wire, and the size of a staging slot. 16 .. 1 GiB. 0:
  // automatic. Then each transfer has what suits its sizes. A slot is 8 MiB, or as much less as it
  // takes for budget_bytes to be 16 slots (budget_buckets, if that is fewer).
  int64_t bucket_bytes = 0;
  // Most buckets of one channel (source, destination, transport) in flight at once. 0: automatic.
  // With a budget, more than 512 / (ranks - 1), or 8 if that is more, count as so many. What is on
  // its way to a rank takes memory there before the rank has asked for it.
  int max_in_flight = 0;
  // The gate: most buckets, and most bytes of staging, that a rank holds at once over all channels.
  // Both come down to min(budget_buckets, budget_bytes / slot) equal slots. 0: no limit of this
  // kind; -1 for budget_bytes: 16 slots.
  int64_t budget_buckets = 16;
  int64_t budget_bytes = -1;
  // How long a rank may see no progress while it waits, before everything ends with
  // DeadlineExceeded. Progress is its own, and that of ranks which it waits for, as they tell. Also
  // how long a collective call waits for ranks that have not made it, whatever else they do.
  absl::Duration timeout = absl::Seconds(30);
  // Stages of buckets that are recorded, for a trace; what comes after so many is dropped. About
  // 64 bytes each, allocated at once. May differ between ranks.
  int64_t trace_events = 0;
  // A thread of the session's own drives its runs, so that they go on while the caller computes,
  // and Wait sleeps. Waiting then begins with Start: `timeout` has to cover how far apart ranks
  // start a run, and how long a late destination takes. The fabric must allow it: over MPI,
  // initialise with MPI_THREAD_MULTIPLE. May differ between ranks.
  bool progress_thread = false;
  // The device whose memory tensors may be in, beside host memory; null: none. May differ between
  // ranks, as tensors may: each side of each transfer lies where its views say.
  std::shared_ptr<Accelerator> accelerator;
  // What carries transfers between ranks; null: messages of the fabric, through pinned staging
  // where these cannot take device memory, and within a node `direct`. Needs an accelerator. Of one
  // kind on all ranks.
  std::shared_ptr<TransportMaker> transport;
  // Between ranks of one node, without an accelerator: copy straight from source to destination
  // memory, both ends a part of it, instead of sending messages. Where the kernel does not allow
  // that (process_vm_readv), the lowest rank says so on stderr. What AllocateShared gave at one end
  // is copied all the same, and messages carry the rest.
  bool direct = true;
  // What several ranks need may pass through one of them on its way to the others: bytes cross
  // between nodes once for all ranks of a node, and a source need not send to everyone itself. If
  // false, each rank gets what it needs straight from a rank that holds it; only what is reduced
  // still passes through ranks that need it. Slower wherever destinations are replicated on other
  // nodes: it is there to compare with.
  bool relay = true;
};

// What this rank's part of a compiled transfer comes to.
struct TransferStats {
  int64_t buckets = 0;            // that this rank is a member of
  int64_t buckets_as_source = 0;  // that it sends or copies locally: summed over ranks, all buckets
  int64_t channels = 0;           // that this rank is a member of
  int64_t channels_as_source = 0;
  int64_t sent_bytes = 0;  // to other ranks: contributions and relays included
  // That came here to stay, as it crosses; summed over ranks, the payload.
  int64_t received_bytes = 0;
  int64_t local_bytes = 0;  // copied within the rank
  uint64_t plan_hash = 0;   // equal on all ranks
  // The knobs in force, equal on all ranks: as given, or what automatic came to.
  int64_t bucket_bytes = 0;
  int max_in_flight = 0;
  // The most this rank could hold with max_in_flight alone: the sum over its channels of the
  // max_in_flight (or fewer) largest buckets; bytes counts staging for dense tensors.
  int64_t peak_buckets_without_budget = 0;
  int64_t peak_bytes_without_budget = 0;
  absl::Duration plan_time;  // spent on planning, without comparing
};

// What has happened since the last ResetCounters, on this rank.
struct SessionCounters {
  int64_t buckets_finished = 0;
  int64_t buckets_peak = 0;  // held at once
  int64_t staging_bytes_peak = 0;
  int64_t operations_peak = 0;     // transport operations outstanding at once
  int64_t waited_for_channel = 0;  // buckets that waited, by cause
  int64_t waited_for_budget = 0;
  absl::Duration running;      // with a run in flight
  absl::Duration budget_wait;  // of that, with a bucket held back by the budget alone
};

struct StartOptions {
  // Report NeedsMemory and TensorDone of this run through PollEvent.
  bool events = false;
  // Destination views without data are supplied later, by Supply. Implies `events`. A window whose
  // tensors lack memory here opens once all earlier ones are done here: then NeedsMemory asks for
  // each of them, and nothing of the window moves before all have been supplied. So this rank needs
  // memory for one window at a time, beside the budget.
  bool late_destinations = false;
  // A stream of the session's accelerator, in whose order the run takes part. The run comes after
  // what the stream holds at Start. Memory that Supply gives is touched after what the stream holds
  // at that call. What the stream gets after Wait has returned comes after the run. What it gets
  // after PollEvent has returned a TensorDone comes after that tensor. Where the transport works in
  // stream order (NCCL, CUDA IPC), neither need have ended by then. There the host may use the
  // memory only once it has waited for the stream. An event that nobody has taken holds nothing up.
  // The stream stays until the run is done, and is not being captured before. PollEvent puts waits
  // into it. So does the run's end, which may come on a progress thread.
  // Without a stream, memory is ready when it is given, and complete at TensorDone and after Wait.
  absl::optional<StreamHandle> stream;
};

struct Event {
  enum class Kind : uint8_t {
    kNeedsMemory,  // the tensor's destination has to be supplied
    kTensorDone,   // this rank's part of the tensor is done: its destination is complete and may be
                   // taken away, its source may change; of a run in a stream: in that stream
    kFailed,       // the run has failed, or was cancelled: `status` says why
  };
  Kind kind = Kind::kTensorDone;
  int64_t run = 0;
  int tensor = -1;  // index into the spec's tensors; -1 for kFailed
  absl::Status status;
};

// A compiled transfer. Owned by its session.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual const TransferSpec& spec() const = 0;
  virtual const TransferStats& stats() const = 0;
};

// One rank's end of a group of ranks that move tensors between them.
//
// Calls marked collective are made by all ranks in the same order, also by ranks that have nothing
// to do; each is compared across ranks, and a rank that differs or stays silent is named.
//
// Several runs may be in flight at once, under one budget. Each rank works on them in the order in
// which they were started, as far as the budget has room to choose: those of a lower priority class
// first. A rank may be ahead of others: no run ends on any rank before all ranks have started the
// run that was started 2 * kMaxRunsInFlight before it.
//
// Failure: the first error in a run poisons the session and reaches every rank that polls, or has a
// progress thread. From
// then on all calls return that error; tensors not yet complete are undefined; all memory given to
// unfinished runs must stay valid until Close() returns OK or the process ends. A TensorDone of a
// run in a stream does not help: what the stream had not come to is undefined, too.
//
// Thread: one at a time, always the same; IsDone may be called from any. So it is with a progress
// thread, too, which is the session's own affair.
//
// Fork: a session, its transfers and streams belong to the process that made them. A child of
// fork() has no progress thread, and shares sockets and rings with its parent. There each call of a
// session that returns a Status, and Stream::Next, returns FailedPrecondition, and PollEvent
// returns false. A session or stream that is destroyed there leaves all it has as it is.
class Session {
 public:
  using RunId = int64_t;

  // From the oldest unfinished run to the newest.
  static constexpr int64_t kMaxRunsInFlight = 16;

  // Collective. InvalidArgument with the breakdown if the limits leave no room for one bucket;
  // ResourceExhausted if staging cannot be allocated, or no thread be made; FailedPrecondition on
  // all ranks if one of them wants a progress thread that its fabric does not allow.
  static absl::StatusOr<std::unique_ptr<Session>> Create(std::unique_ptr<Fabric> fabric,
                                                         const SessionOptions& options);
  virtual ~Session() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const SessionOptions& options() const = 0;
  // Slots that the budget comes to; 0 if it sets no limit.
  virtual int64_t slots() const = 0;
  // The most bytes that a bucket may have: of a slot.
  virtual int64_t slot_bytes() const = 0;

  // Collective; blocks until all ranks have compared their plans. Plans this rank's part. On bad
  // input every rank gets an error, nothing is kept, and the session stays usable: InvalidArgument
  // (what is wrong with the spec), FailedPrecondition (ranks disagree: which, on what),
  // DeadlineExceeded (ranks that did not call; this one poisons the session). No run may be in
  // flight. The transfer lives until Drop, or as long as the session.
  virtual absl::StatusOr<Transfer*> Compile(const TransferSpec& spec) = 0;

  // Collective; blocks until all ranks have called. Ends the transfer, of which all ranks drop the
  // same: its plan and memory for its runs are given back, and `transfer` may not be used any more.
  // Staging stays, for transfers to come: without a budget it is what the channels of all transfers
  // that were there at once can fill. Errors are those of Compile: InvalidArgument if the transfer
  // is not this session's, FailedPrecondition if a run is in flight.
  virtual absl::Status Drop(Transfer* transfer) = 0;

  // Collective; does not block. Begins a run that carries `src` (one view per tensor of the spec;
  // ignored where this rank is not in the source mesh) into `dst` (likewise). The views' shapes
  // are LocalShape's. A transfer's first run compares across ranks whether all views are right: if
  // not, Wait returns InvalidArgument on every rank and nothing has moved. Later runs with wrong
  // views poison the session. InvalidArgument: a view's shape, dtype, device or strides; source
  // memory that overlaps destination memory. FailedPrecondition: too many runs are in flight; other
  // ranks have started another transfer as this run (poisons the session, names ranks and runs).
  // With a stream: FailedPrecondition without accelerator, InvalidArgument if it is not its.
  virtual absl::StatusOr<RunId> Start(Transfer* transfer, absl::Span<const TensorView> src,
                                      absl::Span<const TensorView> dst,
                                      const StartOptions& options) = 0;
  absl::StatusOr<RunId> Start(Transfer* transfer, absl::Span<const TensorView> src,
                              absl::Span<const TensorView> dst) {
    return Start(transfer, src, dst, StartOptions());
  }

  // Destination memory for `tensor` of a run with late_destinations; from Start on, also before
  // NeedsMemory asks. On an error nothing has changed, and memory may be supplied again:
  // InvalidArgument as in Start, or no such tensor; FailedPrecondition: the tensor has memory, or
  // needs none here, or the run is over; what the runtime says, if it cannot mark the run's stream.
  virtual absl::Status Supply(RunId run, int tensor, const TensorView& dst) = 0;

  // The oldest event not yet taken; false if there is none. Events of a run are kept until 64 later
  // runs have been started; then those that nobody has taken are dropped. So is a TensorDone of a
  // run in a stream that has failed meanwhile. An error of that stream poisons the session.
  virtual bool PollEvent(Event* event) = 0;

  // Collective; does not block. Gives the run up: what other ranks wait for is still carried out,
  // the rest is not, and no memory is waited for. Then Wait returns Cancelled, unless this rank's
  // part was done before, and destinations without a TensorDone are undefined. The other ranks need
  // this one until all agree on what is carried out, also where this rank's part was done before:
  // go on to poll, or to wait for the run, until IsDone. FailedPrecondition: the run has been
  // cancelled before.
  virtual absl::Status Cancel(RunId run) = 0;

  // Makes progress without blocking. Returns the poisoning error once there is one.
  virtual absl::Status Poll() = 0;

  // Polls until this rank's part of `run` is done: its sources may change, its destinations are
  // complete. After Cancel: until what it asked of this rank is done, too. Yields, then sleeps
  // briefly, while nothing moves; with a progress thread, sleeps. How a run ended is known as long
  // as the session lives; of those that failed, beyond the newest 256, without the message.
  virtual absl::Status Wait(RunId run) = 0;

  // True once Wait(run) would not wait. Any thread.
  virtual bool IsDone(RunId run) const = 0;

  // Collective; blocks until all ranks have called, each for as much as it needs, or 0. Host memory
  // for tensors, zero and page-aligned, which the ranks of this node copy to and from faster than
  // any other memory (SessionOptions::direct); where they send messages, memory as any other. Null
  // for 0 bytes. May outlive the session; physical memory is given back when it is gone on this
  // rank and the node's other ranks have called again, or ended their sessions. ResourceExhausted,
  // on all ranks, if one of them cannot have it; InvalidArgument if `bytes` is negative. No run may
  // be in flight.
  virtual absl::StatusOr<std::shared_ptr<std::byte>> AllocateShared(int64_t bytes) = 0;

  // Ends the session. OK: no memory is in use any more. FailedPrecondition: a run is in flight, or
  // a stream is open.
  // After poisoning: OK as soon as nothing is under way any more, which takes no time if all ranks
  // that live poll, or have a progress thread. DeadlineExceeded after the timeout: a rank stays
  // silent with which something is under way.
  // The progress thread ends, unless a run is in flight.
  virtual absl::Status Close() = 0;

  // Collective; blocks until all ranks have compared their options and know the items. No run may
  // be in flight. A stream has a budget of its own, and its failure is its own: the session goes
  // on. On bad input every rank gets an error, nothing is kept: InvalidArgument, NotFound and the
  // like (what is wrong with the source, options or cursor, and on which ranks), FailedPrecondition
  // (ranks disagree). Streams advance in all calls that make progress, and must be destroyed before
  // the session.
  virtual absl::StatusOr<std::unique_ptr<Stream>> OpenStream(const StreamOptions& options) = 0;

  // Collective; blocks, and drives streams meanwhile. Fills the views from a checkpoint: "file:DIR"
  // (reads past the page cache), "buffered:DIR" (through it), "mmap:DIR", "http://HOST/BASE/" or
  // "https://HOST/BASE/". It is the files that model.safetensors.index.json names; without an index
  // model.safetensors; without either, in a directory, all *.safetensors that are not shards of a
  // save (docs/checkpoints.md). Where dtypes differ, elements are cast.
  // Bad input is found before anything is written, and every rank gets an error: InvalidArgument
  // (tensors, options, views, a header), NotFound (no checkpoint, or tensors that it lacks),
  // DataLoss (a file is too short, or of another save than its index), FailedPrecondition (ranks
  // disagree; a run is in flight). Later failures reach every rank, too, and leave destinations
  // undefined; the session goes on. DataLoss names a file that was replaced or written to
  // meanwhile: beside a save, a load gives one of the checkpoints whole, or an error.
  // DeadlineExceeded for a rank that does not call, or goes silent: that poisons the session. How
  // long rank 0 takes for the index and the headers counts against nobody.
  virtual absl::StatusOr<CheckpointStats> LoadCheckpoint(const std::string& uri,
                                                         absl::Span<const CheckpointTensor> tensors,
                                                         const CheckpointOptions& options) = 0;

  // The reverse: collective; blocks, and drives streams. Writes the tensors into `directory`, which
  // all ranks see, and which is made if its parent is there: as model.safetensors, or as
  // model-00001-of-0000N.safetensors and so on with an index. Where files have these names already,
  // shards have eight more digits in theirs. Of replicas, one is written.
  // The directory has the older checkpoint until one file takes or loses its name, and the newer
  // one from then on. This holds if a rank is killed or the system stops (docs/checkpoints.md).
  // Older files are removed after that. Errors reach every rank as those of LoadCheckpoint do. They
  // leave the older checkpoint, unless they begin with "the new checkpoint is in place".
  // FailedPrecondition also for a directory into which somebody else saves. On a file system
  // without flock it may come at the end: the directory then has the other save's checkpoint,
  // unless the error begins as said.
  virtual absl::StatusOr<CheckpointStats> SaveCheckpoint(const std::string& directory,
                                                         absl::Span<const CheckpointTensor> tensors,
                                                         const CheckpointOptions& options) = 0;

  // What has been recorded; null if trace_events is 0.
  virtual TraceLog* trace() = 0;

  virtual SessionCounters counters() const = 0;
  virtual void ResetCounters() = 0;
};

}  // namespace sluice

#endif  // SLUICE_SESSION_H_
