// One rank's session: its agreement with the others, its transfers and runs, and what happens on
// failure.
#ifndef SLUICE_SRC_SESSION_SESSION_IMPL_H_
#define SLUICE_SRC_SESSION_SESSION_IMPL_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device/device.h"
#include "session/agreement.h"
#include "session/backoff.h"
#include "session/clock.h"
#include "session/compiled_transfer.h"
#include "session/done_runs.h"
#include "session/limits.h"
#include "session/runner.h"
#include "session/transfer_run.h"
#include "session/watch.h"
#include "sluice/session.h"
#include "trace/recorder.h"
#include "transport/deadline.h"
#include "transport/transport.h"

namespace sluice {

class SessionImpl : public Session, private Witness {
 public:
  SessionImpl(std::unique_ptr<Fabric> fabric, const SessionOptions& options)
      : fabric_(std::move(fabric)),
        options_(options),
        agreement_(fabric_.get()),
        watch_(fabric_.get(), options.timeout) {}

  // Compares the options on all ranks, then opens what runs need.
  absl::Status Open();
  int rank() const override { return fabric_->rank(); }
  int size() const override { return fabric_->size(); }
  const SessionOptions& options() const override { return options_; }
  int64_t slots() const override { return slots_; }

  absl::StatusOr<Transfer*> Compile(const TransferSpec& spec) override;
  absl::StatusOr<RunId> Start(Transfer* transfer, absl::Span<const TensorView> src,
                              absl::Span<const TensorView> dst,
                              const StartOptions& options) override;
  absl::Status Supply(RunId id, int tensor, const TensorView& dst) override;
  bool PollEvent(Event* event) override;
  absl::Status Cancel(RunId id) override;
  absl::Status Poll() override;
  absl::Status Wait(RunId run) override;
  bool IsDone(RunId run) const override;
  absl::Status Close() override;
  TraceLog* trace() override { return trace_.get(); }
  SessionCounters counters() const override { return runner_->counters(); }
  void ResetCounters() override { runner_->ResetCounters(); }

 private:
  PlanOptions PlanOptionsNow() const;
  absl::Status Plan(const TransferSpec& spec, const PlanHash& hash,
                    std::unique_ptr<CompiledTransfer>* transfer);
  CompiledTransfer* Find(const Transfer* transfer) const;
  TransferRun* FindRun(RunId id) const;
  absl::Status CheckRun(RunId id) const;
  absl::Status CheckIdle(absl::string_view call) const;

  // Other ranks may be waiting for this one's part in the Cancel of a run that is over here. The
  // poisoning error if there is one.
  absl::Status FinishCancels();
  std::unique_ptr<TransferRun> TakeRun(const CompiledTransfer& transfer);
  absl::Status OutcomeOf(RunId run) const;

  // Compares across ranks, waiting for them. Poisons only if the ranks are out of step then.
  absl::Status Agree(Proposal proposal);

  // The first error wins, reaches every rank, and stays.
  absl::Status Poison(const absl::Status& status);
  absl::Status TakePoison(const absl::Status& status);
  absl::Status CheckAlarm();

  // One round of progress; true if anything moved.
  absl::StatusOr<bool> Advance();

  // What all ranks do in the order of their calls, one after the other. A cancelled run is cut once
  // all have called Cancel: until then a rank may wait for it, or for a later one, before its call.
  struct Collective {
    enum class Kind : uint8_t { kCompareViews, kCancel, kCut };
    Kind kind;
    RunId run;
    absl::Status status;  // of this rank's views
  };
  absl::StatusOr<bool> AdvanceCollective();
  absl::StatusOr<bool> BeginCollective(const Collective& front);

  // An earlier run of the transfer was compared since this one was started. Ranks that start it
  // only now, knowing that, do not compare either.
  absl::StatusOr<bool> SkipComparison(TransferRun* run);

  // The largest bucket of `run`, which is done here: this rank needs no more of the others.
  BucketId LastBucketOf(RunId run) const;

  // The number of the transfer that was started as `run`; -1 if that is forgotten.
  int TransferOf(RunId id) const;
  void Refuse(TransferRun* run, const absl::Status& status);

  // Ends what is done; true if anything was.
  bool EndRuns();
  bool IsCancelPending(RunId run) const;
  void End(TransferRun* run, const absl::Status& status);
  BucketReport Report(const BucketQuestion& question) const override;
  void NoteMove();
  absl::StatusOr<bool> CheckStall();

  // What to ask other ranks about, and which ones.
  bool FindQuestion();

  static constexpr size_t kOutcomesMax = 256;

  // Destroyed in reverse order: the runner's transport before its fabric.
  std::unique_ptr<Fabric> fabric_;
  const SessionOptions options_;
  int64_t slots_ = 0;
  Agreement agreement_;
  Watch watch_;
  std::vector<std::unique_ptr<CompiledTransfer>> transfers_;
  std::deque<Event> events_;
  std::vector<std::unique_ptr<TransferRun>> runs_;  // in flight, ascending
  std::vector<std::unique_ptr<TransferRun>> spare_runs_;
  std::unique_ptr<TraceRecorder> trace_;  // null: none is wanted
  std::unique_ptr<Runner> runner_;
  RunId last_run_ = 0;  // the last one started
  DoneRuns done_;
  std::map<RunId, absl::Status> outcomes_;  // of the newest runs that did not end well
  std::set<RunId> cancelled_;
  std::array<int, 4 * kMaxRunsInFlight> transfer_of_run_{};  // of ended runs, by number
  std::deque<Collective> collectives_;
  bool comparing_ = false;  // the first of them
  std::string compared_;    // a name that the agreement refers to
  int64_t last_look_ns_ = 0;
  int64_t idle_ns_ = 0;  // without progress, as far as this rank has looked
  BucketQuestion question_;
  std::vector<int> members_;
  absl::Status poison_;
  std::atomic<bool> poisoned_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SESSION_IMPL_H_
