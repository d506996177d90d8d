// A session's transfers and their runs: compiled, started, cancelled, carried on, ended.
#ifndef SLUICE_SRC_SESSION_TRANSFER_TRANSFERS_H_
#define SLUICE_SRC_SESSION_TRANSFER_TRANSFERS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "plan/plan.h"
#include "session/base/memory_rules.h"
#include "session/base/run_id.h"
#include "session/peers/bucket_report.h"
#include "session/peers/peers.h"
#include "session/peers/stall_clock.h"
#include "session/peers/watch.h"
#include "session/transfer/compiled_transfer.h"
#include "session/transfer/run_history.h"
#include "session/transfer/runner.h"
#include "session/transfer/transfer_run.h"
#include "sluice/session.h"
#include "sluice/transport.h"
#include "trace/recorder.h"

namespace sluice {

// Never waits, but for the other ranks in Compile and Drop. Errors of calls are those of Session.
// Thread: the session's, unless said otherwise.
class Transfers final : private Witness {
 public:
  struct Parts {
    std::unique_ptr<Device> device;
    std::unique_ptr<Transport> transport;
    PlanOptions plan;     // equal on all ranks
    Runner::Trace trace;  // which must outlive the transfers
  };
  // `peers` and `options` must outlive this object.
  Transfers(Peers* peers, const SessionOptions* options, Parts parts);
  // In a forked child the runs' ends of connections are the parent's, too, and stay.
  ~Transfers() override;

  // ---- Calls of a session that is not poisoned.

  // Collective. No run is in flight, and the device has nothing to do.
  absl::StatusOr<Transfer*> Compile(const TransferSpec& spec);
  absl::Status Drop(Transfer* transfer);
  // `binding`: as TransferRun::Bind has it.
  absl::StatusOr<RunId> Start(Transfer* transfer, absl::Span<const TensorView> src,
                              absl::Span<const TensorView> dst, int64_t binding,
                              const StartOptions& options);
  absl::Status Supply(RunId id, int tensor, const TensorView& dst);
  absl::Status Cancel(RunId id);

  // ---- Calls at any time.

  bool PollEvent(Event* event, RunId* run);
  // The run has ended here, and this rank owes the others nothing of it. Thread: any.
  bool IsDone(RunId run) const { return history_.IsOver(run) && !history_.IsCancelPending(run); }
  const RunHistory& history() const { return history_; }
  // FailedPrecondition, with the runs, while there are any in flight.
  absl::Status CheckIdle(absl::string_view call) const;
  MemoryRules MemoryRulesNow() const {
    return runner_->MemoryRulesFor(options_->accelerator.get());
  }
  SessionCounters counters() const { return runner_->counters(); }
  void ResetCounters() { runner_->ResetCounters(); }

  // ---- Progress.

  // One round; true if anything moved. Its errors poison.
  absl::StatusOr<bool> Advance();
  // While true, this rank waits for all that HasCollectives tells of.
  void AwaitCollectives(bool awaits);
  // How often Advance has moved something.
  int64_t moves() const { return moves_; }
  // False: Advance has nothing to do.
  bool is_active() const { return !runs_.empty() || !collectives_.empty() || is_device_busy(); }
  bool is_device_busy() const { return runner_->busy(); }
  // True while other ranks' messages are waited for.
  bool AwaitsRanks() const { return !runs_.empty() || AreCollectivesAwaited() || is_device_busy(); }
  // Other ranks may be waiting for this one's part in what is collective: in the Cancel of a run
  // that is over here, say. True while there is such a part and no run is in flight.
  bool HasCollectives() const { return runs_.empty() && !collectives_.empty(); }
  bool HasCancels() const;  // those alone

  // ---- Failure.

  // Nothing new begins; all runs have that error.
  void Fail(const absl::Status& status);
  // As Runner::Settle.
  bool Settle() { return runner_->Settle(); }
  bool has_operations() const { return runner_->has_operations(); }

 private:
  // A step that all ranks take in the order of their calls, one after the other. A cancelled run is
  // cut once all have called Cancel. Until then a rank may wait for this run, or for a later one,
  // before its call.
  struct Collective {
    // kKeepStep: ranks tell each other that they have started every kMaxRunsInFlight-th run. The
    // run 2 * kMaxRunsInFlight runs later waits for that.
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
  // Releases the run as soon as all ranks have got so far that it may go on.
  void Release(TransferRun* run);
  // True if this rank waits for one of them.
  bool AreCollectivesAwaited() const;
  // An earlier run of the transfer was compared since this one was started. Ranks that start it
  // only now, knowing that, do not compare either.
  absl::Status SkipComparison(TransferRun* run);
  // The largest bucket of `run`, which is done here: this rank needs no more of the others.
  BucketId LastBucketOf(RunId run) const;

  absl::Status Plan(const TransferSpec& spec, const PlanHash& hash,
                    std::unique_ptr<CompiledTransfer>* transfer);
  absl::Status Cut(CompiledTransfer* transfer);
  CompiledTransfer* Find(const Transfer* transfer) const;
  TransferRun* FindRun(RunId id) const;
  // The number of the transfer that was started as `id`; -1 if that is forgotten.
  int TransferOf(RunId id) const;
  // No run may be in flight.
  void CloseImports();
  absl::Status CheckStart(const CompiledTransfer* transfer, const StartOptions& options) const;
  std::unique_ptr<TransferRun> TakeRun(const CompiledTransfer& transfer);
  void Refuse(TransferRun* run, const absl::Status& status);

  // Puts the run's stream behind what the event tells of; false if the event is not to be told.
  bool HoldBackFor(const RunEvent& next);
  // Ends what is done; true if anything was.
  bool EndRuns();
  void End(TransferRun* run, const absl::Status& status);
  BucketReport Report(const BucketQuestion& question) const override;
  int64_t last_run() const override { return history_.last(); }
  BucketReport StandingOf(const BucketQuestion& question) const;
  BucketReport StandingInAgreement(const BucketQuestion& question) const;
  void NoteMove();
  // Poisons if nothing has moved for too long, and no rank that is late excuses it.
  absl::Status CheckStall();
  // Finds the question for other ranks, and which ranks to ask.
  bool FindQuestion();

  Peers* const peers_;
  const SessionOptions* const options_;
  const PlanOptions plan_options_;
  std::map<int, std::unique_ptr<CompiledTransfer>> transfers_;  // by number
  int transfers_compiled_ = 0;
  std::deque<RunEvent> events_;
  std::vector<std::unique_ptr<TransferRun>> runs_;  // in flight, ascending
  std::vector<std::unique_ptr<TransferRun>> spare_runs_;
  std::unique_ptr<Runner> runner_;
  RunHistory history_;
  RunId started_everywhere_ = 0;  // as far as this rank has heard
  std::vector<RunId> held_back_;  // until that is further
  std::deque<Collective> collectives_;
  bool comparing_ = false;  // the first of them
  bool awaits_all_ = false;
  std::string compared_;  // a name that the agreement refers to
  StallClock stall_clock_;
  int64_t moves_ = 0;
  BucketQuestion question_;
  std::vector<int> members_;  // of the bucket that the question is about
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_TRANSFERS_H_
