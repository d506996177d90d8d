// Moves tensors between meshes: transfers are compiled once and run many times. Sessions also
// stream data shards from storage (stream.h), and load and save checkpoints (checkpoint.h).
#ifndef SLUICE_SESSION_H_
#define SLUICE_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "sluice/accelerator.h"
#include "sluice/fabric.h"
#include "sluice/run.h"
#include "sluice/tensor.h"
#include "sluice/trace.h"
#include "sluice/transfer.h"

namespace sluice {

class SessionImpl;
class World;  // sluice/world.h

// A limit that never holds anything up.
inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// Everything here must be equal on all ranks, unless it says otherwise; Create checks it.
struct SessionOptions {
  // Most bytes of one bucket on the wire, and the size of a staging slot. 16 .. 1 GiB. Without it:
  // automatic. Each transfer then chooses its own bucket size, up to one slot. A slot is
  // budget_bytes / min(16, budget_buckets), from 64 KiB to 8 MiB. A smaller budget is one slot.
  absl::optional<int64_t> bucket_bytes = absl::nullopt;
  // Most buckets of one channel (source, destination, transport) in flight at once. 1 .. 65,536.
  // Without it: automatic. With a budget, the most is max(8, 512 / (ranks - 1)). A bucket on its
  // way to a rank takes memory there before the rank has asked for it.
  absl::optional<int> max_in_flight = absl::nullopt;
  // Chunks of several tensors with the same members join into one bucket. False: each chunk is a
  // bucket of its own.
  bool coalesce = true;
  // The gate: most buckets, and most bytes of staging, that a rank holds at once over all channels.
  // Both come down to min(budget_buckets, budget_bytes / slot) equal slots. kNoLimit: no limit of
  // this kind. Without budget_bytes: 16 slots.
  int64_t budget_buckets = 16;
  absl::optional<int64_t> budget_bytes = absl::nullopt;
  // How long a rank may see no progress while it waits, before everything ends with
  // DeadlineExceeded. Progress is its own, and that of ranks which it waits for, as they tell.
  // Ranks that are late have `patience` instead.
  absl::Duration timeout = absl::Seconds(30);
  // How long ranks are waited for that are late, from the last progress on. Then everything ends
  // with DeadlineExceeded, which names them. A rank is late with a run or a collective call if it
  // has not started it, and answers. A rank answers while it waits for a run or a stream, in Poll,
  // and while it has a progress thread. One that does neither is silent, for which `timeout` counts
  // from the time that it was asked. So it is with one that waits in another collective call. Less
  // than `timeout` is as much as `timeout`. May differ between ranks: the first one that loses
  // patience ends it for all. Create, and what streams and checkpoints do after their beginnings,
  // know `timeout` alone.
  absl::Duration patience = absl::InfiniteDuration();
  // Most stages of buckets that are recorded, for a trace. Later ones are dropped. 0 .. 2^24. Each
  // takes about 64 bytes, allocated at once. May differ between ranks.
  int64_t trace_events = 0;
  // A thread of the session's own drives its runs, so that they go on while the caller computes,
  // and Wait sleeps. Waiting then begins with Start: `timeout` has to cover how long a late
  // destination takes. The fabric must allow it: over MPI, initialise with MPI_THREAD_MULTIPLE. May
  // differ between ranks.
  bool progress_thread = false;
  // The device whose memory tensors may be in, beside host memory; null: none. May differ between
  // ranks, as tensors may: each side of each transfer lies where its views say.
  std::shared_ptr<Accelerator> accelerator = nullptr;
  // The transport of transfers between ranks. Null: messages of the fabric, and within a node
  // `direct`. Messages that cannot take device memory go through pinned staging. A transport needs
  // an accelerator, and is of one kind on all ranks.
  std::shared_ptr<TransportMaker> transport = nullptr;
  // Between ranks of one node, without an accelerator: copy straight from source to destination
  // memory, both ends a part of it, instead of sending messages. If the kernel does not allow such
  // copies (process_vm_readv), the lowest rank says so on stderr. Memory of AllocateShared at one
  // end is then copied all the same, and messages carry the rest.
  bool direct = true;
};

// The size of this rank's part of a compiled transfer.
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
  // max_in_flight (or fewer) largest buckets. The bytes count staging for dense tensors.
  int64_t peak_buckets_without_budget = 0;
  int64_t peak_bytes_without_budget = 0;
  absl::Duration plan_time;  // spent on planning, without comparing
};

// Counts on this rank since the last ResetCounters.
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

// The wires that carry a session's transfers between this rank and the others.
struct SessionReport {
  int rank = 0;
  std::vector<WireReport> wires;  // one for each other rank, ascending

  // For people, on one line, equal ranks together: "rank 0 to ranks 1-7: direct (shared memory of
  // this node); to ranks 8-15: tcp, not ucx (no member has an RDMA device)".
  std::string ToString() const;
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
// to do. Each call is compared across ranks. A rank that differs or stays silent is named.
//
// Several runs may be in flight at once, under one budget. Each rank works on them in the order in
// which they were started. If the budget has room to choose, runs of a lower priority class go
// first. A rank may be ahead of others. But no run ends on any rank before all ranks have started
// the run 2 * kMaxRunsInFlight before it.
//
// Failure: the first error in a run poisons the session and reaches every rank that polls, or has a
// progress thread. From then on all calls return that error. Tensors not yet complete are
// undefined. All memory given to unfinished runs must stay valid until Close() returns OK or the
// process ends. Nobody may write it until then: a rank that was stopped may still copy from it. A
// TensorDone of a run in a stream does not help: what the stream had not come to is undefined.
//
// Thread: one at a time, always the same; IsDone may be called from any. So it is with a progress
// thread, too, which is the session's own affair.
//
// Fork: a session, its transfers and streams belong to the process that made them. A child of
// fork() has no progress thread and no TCP connections, and shares rings with its parent. There
// each call of a session that returns a Status, and Stream::Next, returns FailedPrecondition, and
// PollEvent returns false. A session or stream that is destroyed there leaves all it has as it is.
class Session {
 public:
  // From the oldest unfinished run to the newest.
  static constexpr int64_t kMaxRunsInFlight = 16;

  // Collective. InvalidArgument with the breakdown if the limits leave no room for one bucket;
  // ResourceExhausted if staging cannot be allocated, or no thread be made; FailedPrecondition on
  // all ranks if one of them wants a progress thread that its fabric does not allow.
  static absl::StatusOr<std::unique_ptr<Session>> Create(std::unique_ptr<Fabric> fabric,
                                                         const SessionOptions& options);
  // Over World::MakeFabric, whose errors come first. The session may outlive the world.
  static absl::StatusOr<std::unique_ptr<Session>> Create(World* world,
                                                         const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const;
  int size() const;
  const SessionOptions& options() const;
  // Slots that the budget comes to; 0 if it sets no limit.
  int64_t slots() const;
  // The most bytes that a bucket may have: of a slot.
  int64_t slot_bytes() const;

  // Collective; blocks until all ranks have compared their plans. Plans this rank's part. On bad
  // input every rank gets an error, nothing is kept, and the session stays usable: InvalidArgument
  // (what is wrong with the spec), FailedPrecondition (ranks disagree: which, on what),
  // DeadlineExceeded (ranks that did not call: SessionOptions::patience; this one poisons the
  // session). No run may be in flight. The transfer lives until Drop, or as long as the session.
  absl::StatusOr<Transfer*> Compile(const TransferSpec& spec);

  // Collective; blocks until all ranks have called. Ends the transfer; all ranks drop the same one.
  // The transfer's plan and memory for its runs are given back, and `transfer` may not be used any
  // more. Staging stays, for transfers to come: without a budget it is what the channels of all
  // transfers that were there at once can fill. Errors are those of Compile: InvalidArgument if the
  // transfer is not this session's, FailedPrecondition if a run is in flight.
  absl::Status Drop(Transfer* transfer);

  // Collective; does not block. Begins a run that carries `src` into `dst`. Each is one view per
  // tensor of the spec. `src` is ignored where this rank is not in the source mesh, `dst` where it
  // is not in the destination mesh. The views' shapes are LocalShape's. A transfer's first run
  // compares across ranks whether all views are right: if not, Wait returns InvalidArgument on
  // every rank and nothing has moved. Later runs with wrong views poison the session.
  // InvalidArgument: a view's shape, dtype, device or strides; source memory that overlaps
  // destination memory. FailedPrecondition: too many runs are in flight; other ranks have started
  // another transfer as this run (poisons the session, names ranks and runs). With a stream:
  // FailedPrecondition without accelerator or while captured, else InvalidArgument.
  absl::StatusOr<Run> Start(Transfer* transfer, const SourceViews& src,
                            absl::Span<const TensorView> dst, const StartOptions& options = {});

  // The oldest event not yet taken; false if there is none. Events of a run are kept until 64 later
  // runs have been started; then those that nobody has taken are dropped. So is a TensorDone of a
  // run in a stream that has failed meanwhile. An error of that stream poisons the session.
  bool PollEvent(Event* event);

  // Makes progress without blocking. Returns the poisoning error once there is one.
  absl::Status Poll();

  // Collective; blocks until all ranks have called, each for as much as it needs, or 0. Host memory
  // for tensors, zero and page-aligned. The ranks of this node copy to and from it faster than to
  // and from any other memory (SessionOptions::direct). For messages it is memory as any other.
  // Null for 0 bytes. The memory may outlive the session. Physical memory is given back when it is
  // gone on this rank and the node's other ranks have called again, or ended their sessions.
  // ResourceExhausted, on all ranks, if one of them cannot have it, or a node's ranks ask for more
  // than the node has left; InvalidArgument if `bytes` is negative. No run may be in flight.
  absl::StatusOr<std::shared_ptr<std::byte>> AllocateShared(int64_t bytes);

  // Collective, as AllocateShared, whose errors it has. Moves what the views show into one block of
  // such memory, once, and points the views there. Views that overlap do so afterwards. Returns the
  // block, which has to stay as long as the views are used; the older memory is the caller's. Null
  // where the views have no elements. InvalidArgument, on all ranks, names a view that is wrong, or
  // is not of host memory. A failed call changes no view.
  absl::StatusOr<std::shared_ptr<std::byte>> Share(absl::Span<TensorView> views);
  // The reverse: moves the views into a new block of this process alone, and returns that. Not
  // collective. Any thread. InvalidArgument: as Share. ResourceExhausted: there is no memory.
  static absl::StatusOr<std::shared_ptr<std::byte>> Unshare(absl::Span<TensorView> views);

  // Collective, in the place of another call that blocks until all ranks have called, by the name
  // of its function: "Connect". For a caller that has nothing good to give to that call. The call
  // fails on all ranks. The error has the code and text of `why`, and names the ranks that refuse.
  // If all refuse, each rank gets its own error. Returns the error. The session stays usable.
  absl::Status Refuse(absl::string_view call, const absl::Status& why);

  // Ends the session. OK: no memory is in use any more. No stream can be opened afterwards.
  // FailedPrecondition: a run is in flight, or a stream is open.
  // After poisoning: OK as soon as nothing is under way any more, which takes no time if all ranks
  // that live poll, or have a progress thread. DeadlineExceeded after the timeout: a rank stays
  // silent with which something is under way.
  // The progress thread ends, unless a run is in flight.
  absl::Status Close();

  // The recorded trace. Null: trace_events is 0, or this is a forked child of a process whose
  // session has a progress thread.
  TraceLog* trace();

  // The same as long as the session lives. Thread: any.
  SessionReport Report() const;

  // Zeros in such a child.
  SessionCounters counters() const;
  void ResetCounters();

 private:
  friend class SessionImpl;
  explicit Session(std::unique_ptr<SessionImpl> impl);

  std::unique_ptr<SessionImpl> impl_;
};

}  // namespace sluice

#endif  // SLUICE_SESSION_H_
