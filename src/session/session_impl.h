// One rank's session: its agreement with the others, its transfers and runs, and what happens on
// failure.
#ifndef SLUICE_SRC_SESSION_SESSION_IMPL_H_
#define SLUICE_SRC_SESSION_SESSION_IMPL_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device/device.h"
#include "session/agreement.h"
#include "session/backoff.h"
#include "session/checkpoint_catalog.h"
#include "session/clock.h"
#include "session/compiled_transfer.h"
#include "session/done_runs.h"
#include "session/fair_lock.h"
#include "session/fork_guard.h"
#include "session/idle_wait.h"
#include "session/limits.h"
#include "session/own_work.h"
#include "session/pending_cancels.h"
#include "session/run_outcomes.h"
#include "session/runner.h"
#include "session/stream_impl.h"
#include "session/stream_source.h"
#include "session/stream_start.h"
#include "session/transfer_run.h"
#include "session/watch.h"
#include "sluice/session.h"
#include "trace/joined_log.h"
#include "transport/deadline.h"
#include "transport/direct_transport.h"
#include "transport/transport.h"

namespace sluice {

class CheckpointFiles;
struct CheckpointInput;
class CheckpointRun;

class SessionImpl : public Session, private Witness, public StreamDriver {
 public:
  SessionImpl(std::unique_ptr<Fabric> fabric, const SessionOptions& options)
      : fabric_(std::move(fabric)),
        options_(options),
        max_in_flight_(MaxInFlightOf(options, fabric_->size())),
        agreement_(fabric_.get()),
        watch_(fabric_.get(), options.timeout) {}
  ~SessionImpl() override;

  // Compares the options on all ranks, then opens what runs need.
  absl::Status Open();
  int rank() const override { return fabric_->rank(); }
  int size() const override { return fabric_->size(); }
  const SessionOptions& options() const override { return options_; }
  int64_t slots() const override { return budget_.slots; }
  int64_t slot_bytes() const override { return budget_.slot_bytes; }

  absl::StatusOr<Transfer*> Compile(const TransferSpec& spec) override;
  absl::Status Drop(Transfer* transfer) override;
  absl::StatusOr<RunId> Start(Transfer* transfer, absl::Span<const TensorView> src,
                              absl::Span<const TensorView> dst,
                              const StartOptions& options) override;
  absl::Status Supply(RunId id, int tensor, const TensorView& dst) override;
  bool PollEvent(Event* event) override;
  absl::Status Cancel(RunId id) override;
  absl::Status Poll() override;
  absl::Status Wait(RunId run) override;
  bool IsDone(RunId run) const override;
  absl::StatusOr<std::shared_ptr<std::byte>> AllocateShared(int64_t bytes) override;
  absl::Status Close() override;
  absl::StatusOr<std::unique_ptr<Stream>> OpenStream(const StreamOptions& options) override;
  absl::StatusOr<CheckpointStats> LoadCheckpoint(const std::string& uri,
                                                 absl::Span<const CheckpointTensor> tensors,
                                                 const CheckpointOptions& options) override;
  absl::StatusOr<CheckpointStats> SaveCheckpoint(const std::string& directory,
                                                 absl::Span<const CheckpointTensor> tensors,
                                                 const CheckpointOptions& options) override;
  TraceLog* trace() override { return trace_.get(); }
  SessionCounters counters() const override { return runner_->counters(); }
  void ResetCounters() override { runner_->ResetCounters(); }

  // --- For whoever drives the session.

  // One round of progress; true if anything moved. Not once the session is poisoned.
  absl::StatusOr<bool> Advance();
  // How to pause when nothing did. Of whoever drives it alone: with a progress thread, a caller's
  // Wait finds the run done.
  IdleWait* idle_wait() { return &idle_wait_; }
  Awaited awaited() const;
  // When something is due whatever happens, on MonotonicNs's clock; INT64_MAX: nothing is.
  int64_t next_due_ns() const;
  // From now on a thread of the session's drives it, and all calls are made under `lock`.
  void set_lock(FairLock* lock) { lock_ = lock; }
  // So many runs, and cancels of runs, have come to their end.
  int64_t ends() const { return ends_; }
  // Any thread.
  const ForkGuard& fork_guard() const { return fork_guard_; }
  bool is_poisoned() const { return poisoned_.load(std::memory_order_acquire); }
  absl::Status CheckRun(RunId id) const;
  // The first error wins, reaches every rank, and stays. Returns the one that has won.
  absl::Status Poison(const absl::Status& status);
  // Of a poisoned session: true once nothing is under way here, nor for other ranks with this one.
  bool Settle();

 private:
  // What carries transfers, by the options. Collective.
  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport(Device* device);
  absl::StatusOr<std::unique_ptr<Transport>> AddDirect(std::unique_ptr<Transport> messages);
  // All ranks' records, if all are well: a DirectExchange.
  absl::StatusOr<std::vector<std::string>> Exchange(const absl::Status& own,
                                                    const std::string& record, const char* call);
  PlanOptions PlanOptionsNow() const;
  int64_t SmallestCacheShare() const;
  absl::Status Plan(const TransferSpec& spec, const PlanHash& hash,
                    std::unique_ptr<CompiledTransfer>* transfer);
  // Not OK in a forked child, and once the session is poisoned.
  absl::Status CheckUsable() const;
  CompiledTransfer* Find(const Transfer* transfer) const;
  TransferRun* FindRun(RunId id) const;
  absl::Status CheckIdle(absl::string_view call) const;
  absl::Status FinishDeviceWork();

  // Other ranks may be waiting for this one's part in what is collective: in the Cancel of a run
  // that is over here, say. The poisoning error if there is one.
  absl::Status FinishCollectives();
  absl::Status FinishCancels();  // those alone
  std::unique_ptr<TransferRun> TakeRun(const CompiledTransfer& transfer);
  // Compares across ranks, waiting for them. Poisons only if the ranks are out of step then.
  absl::Status Agree(Proposal proposal);

  absl::Status TakePoison(const absl::Status& status);
  absl::Status CheckAlarm();

  // What all ranks do in the order of their calls, one after the other. A cancelled run is cut once
  // all have called Cancel: until then a rank may wait for it, or for a later one, before its call.
  struct Collective {
    // kKeepStep: ranks tell each other that they have started every kMaxRunsInFlight-th run. What
    // is 2 * kMaxRunsInFlight runs behind it waits for that.
    enum class Kind : uint8_t { kCompareViews, kKeepStep, kCancel, kCut };
    Kind kind;
    RunId run;
    absl::Status status = absl::OkStatus();  // of this rank's views
    // For cancels, of a run that was over here before: its last bucket here.
    std::optional<BucketId> over_after = std::nullopt;
  };
  // Goes through them as far as it gets without waiting; true if it got on.
  absl::StatusOr<bool> AdvanceCollectives();
  absl::Status BeginCollective(const Collective& front);
  absl::Status EndCollective();
  BucketId LastWanted(const Collective& cut, TransferRun* run);
  void KeepStep();
  // As soon as all ranks have got so far that it may go on.
  void Release(TransferRun* run);
  bool IsStepAwaited() const;
  // True if this rank waits for one of them.
  bool AreCollectivesAwaited() const;

  // An earlier run of the transfer was compared since this one was started. Ranks that start it
  // only now, knowing that, do not compare either.
  absl::Status SkipComparison(TransferRun* run);

  // The largest bucket of `run`, which is done here: this rank needs no more of the others.
  BucketId LastBucketOf(RunId run) const;

  // The number of the transfer that was started as `run`; -1 if that is forgotten.
  int TransferOf(RunId id) const;
  void Refuse(TransferRun* run, const absl::Status& status);

  // Puts the run's stream behind what the event tells of; false if the event is not to be told.
  bool HoldBackFor(const RunEvent& next);

  // Ends what is done; true if anything was.
  bool EndRuns();
  void End(TransferRun* run, const absl::Status& status);
  BucketReport Report(const BucketQuestion& question) const override;
  BucketReport StandingOf(const BucketQuestion& question) const;
  void NoteMove();
  absl::StatusOr<bool> CheckStall();

  // Streams: how they are opened between ranks.
  struct StreamMeeting {
    std::string catalog_text;              // of a source with a uri
    std::vector<StreamRequest> requests;   // of all ranks
    std::unique_ptr<Transport> transport;  // null where nothing is exchanged
  };
  absl::StatusOr<StreamMeeting> MeetForStream(const StreamOptions& options,
                                              const absl::StatusOr<SourceAddress>& address);
  absl::Status GatherCursors(const std::string& own, std::vector<StreamRequest>* requests);
  // This rank's part, without a word to the others.
  absl::StatusOr<std::unique_ptr<StreamImpl>> MakeStream(const StreamOptions& options,
                                                         const SourceAddress& address,
                                                         int64_t begin_ns, StreamMeeting meeting);
  // Streams: how they are driven. True if anything moved.
  bool AdvanceStreams();
  bool has_thread() const override { return lock_ != nullptr; }
  absl::Status Pump() override;
  void Wake() override { idle_wait_.Wake(); }
  void RaiseAlarm(int number, const absl::Status& status) override;
  void Remove(StreamImpl* stream, const absl::Status& unfinished) override;
  // Waits for other ranks, while streams go on.
  void PauseFor(Backoff* backoff);

  // Rank 0's text, for all ranks: Agree on how that rank came to it, and how long it is, and pass
  // it on where `transport` is not null. PassText: of a length that all know.
  // PassNewText: of one that rank 0 alone knows.
  absl::Status ShareText(const absl::Status& own, Transport* transport, std::string* text,
                         const char* call);
  absl::Status PassText(Transport* transport, int64_t bytes, std::string* text, const char* call);
  absl::Status PassNewText(Transport* transport, std::string* text, const char* call);
  absl::Status RunMessages(Transport* transport, absl::Span<const TransportOp> ops,
                           const char* call);

  // Checkpoints: what is agreed on before anything moves.
  absl::Status AgreeOn(const absl::Status& own, const char* call);
  absl::Status AgreeOnInput(const char* call, const CheckpointInput& input, size_t tensors);
  absl::StatusOr<std::unique_ptr<Transport>> OpenCheckpointTransport();
  absl::StatusOr<CheckpointCatalog> ShareCatalog(const SourceAddress& address,
                                                 absl::Span<const CheckpointTensor> tensors,
                                                 const CheckpointOptions& options,
                                                 Transport* transport);
  absl::Status Carry(const char* call, const CheckpointOptions& options, CheckpointRun* run);

  // Calls `step` until it is done on all ranks, while streams go on. The first failure on any of
  // them ends it on all; so does a rank's silence for `timeout`, which poisons, and so does a
  // `timeout` in which no rank moves.
  struct StepResult {
    bool moved = false;
    bool done = false;
    bool waits = false;          // for the system, however long that takes
    int64_t due_ns = INT64_MAX;  // when there is something to do at the latest
  };
  absl::Status FinishTogether(const char* call, absl::Duration timeout,
                              absl::FunctionRef<absl::StatusOr<StepResult>()> step,
                              absl::FunctionRef<std::string()> describe);
  // Collective: waits until the `own_work` of each rank has ended, on a thread of its own; null:
  // this rank has none. However long it takes, it counts against nobody. The first failure on any
  // of them is the outcome on all; then this returns once this rank's work has ended, too.
  absl::Status WorkTogether(const char* call, absl::Duration timeout, OwnWorkFunction own_work);
  // Waits until `work` has ended, on a thread of its own, and drives streams meanwhile.
  void WorkAlone(const std::function<void()>& work);
  absl::StatusOr<CheckpointStats> SaveInto(CheckpointFiles* files, const std::string& directory,
                                           absl::Span<const CheckpointTensor> tensors,
                                           const CheckpointOptions& options);

  // What to ask other ranks about, and which ones.
  bool FindQuestion();

  // Of how many runs events are kept that nobody takes.
  static constexpr int64_t kEventRuns = 4 * kMaxRunsInFlight;

  const ForkGuard fork_guard_;
  // Destroyed in reverse order: the runner's transport before its fabric.
  std::unique_ptr<Fabric> fabric_;
  const SessionOptions options_;
  const int max_in_flight_;  // of a channel; 0: automatic
  Budget budget_;
  int64_t cache_bytes_ = 0;  // the smallest share of any rank; 0: not agreed on yet
  Agreement agreement_;
  Watch watch_;
  std::map<int, std::unique_ptr<CompiledTransfer>> transfers_;  // by number
  int transfers_compiled_ = 0;
  std::deque<RunEvent> events_;
  std::vector<std::unique_ptr<TransferRun>> runs_;  // in flight, ascending
  std::vector<std::unique_ptr<TransferRun>> spare_runs_;
  std::unique_ptr<JoinedTraceLog> trace_;  // null: none is wanted
  std::unique_ptr<Runner> runner_;
  DirectTransport* direct_ = nullptr;  // of the runner's transport; null: messages alone
  RunId last_run_ = 0;                 // the last one started
  DoneRuns done_;
  RunOutcomes outcomes_;  // of runs that did not end well
  RunSet cancelled_;      // by a call of this rank
  PendingCancels pending_cancels_;
  int64_t ends_ = 0;
  RunId started_everywhere_ = 0;                             // as far as this rank has heard
  std::vector<RunId> held_back_;                             // until that is further
  std::array<int, 4 * kMaxRunsInFlight> transfer_of_run_{};  // of ended runs, by number
  std::deque<Collective> collectives_;
  bool comparing_ = false;  // the first of them
  std::string compared_;    // a name that the agreement refers to
  IdleWait idle_wait_;
  IdleWait call_wait_;  // of calls that block: a progress thread pauses on the other one
  int64_t last_look_ns_ = 0;
  int64_t moves_ = 0;    // how often this rank has got on
  int64_t idle_ns_ = 0;  // without progress, as far as this rank has looked
  BucketQuestion question_;
  std::vector<int> members_;
  std::vector<StreamImpl*> streams_;  // open
  FairLock* lock_ = nullptr;          // null: nobody else drives the session
  int64_t streams_opened_ = 0;
  // Of streams that other ranks have opened, and failed, while this one is still about to.
  std::vector<Watch::StreamAlarm> early_alarms_;
  int64_t streams_known_ = 0;  // numbers below are in streams_, or have been
  absl::Status poison_;
  std::atomic<bool> poisoned_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SESSION_IMPL_H_
