// A session's runs by their numbers: which are over, and how; which are cancelled.
#ifndef SLUICE_SRC_SESSION_TRANSFER_RUN_HISTORY_H_
#define SLUICE_SRC_SESSION_TRANSFER_RUN_HISTORY_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "session/base/run_id.h"
#include "session/transfer/done_runs.h"
#include "session/transfer/pending_cancels.h"
#include "session/transfer/run_outcomes.h"
#include "sluice/session.h"

namespace sluice {

// Thread: the session's, unless said otherwise.
class RunHistory {
 public:
  // The last run that was started; 0: none was.
  RunId last() const { return last_; }
  // All runs up to this one are over.
  RunId all_over_up_to() const { return done_.all_up_to(); }
  // InvalidArgument if there is no such run.
  absl::Status Check(RunId run) const;

  // The next run has been started.
  void Begin() { ++last_; }
  // A run of transfer number `transfer` is over.
  void End(RunId run, int transfer, const absl::Status& status);
  bool IsOver(RunId run) const { return done_.Has(run); }  // any thread
  // How a run that is over has ended.
  absl::Status OutcomeOf(RunId run) const { return outcomes_.Of(run); }
  // The number of the transfer that a run which is over was of; -1 if that is forgotten.
  int TransferOf(RunId run) const;

  // False if this rank has cancelled the run before.
  bool BeginCancel(RunId run);
  // The ranks have agreed on what is still carried out of it.
  void EndCancel(RunId run);
  bool IsCancelPending(RunId run) const { return pending_cancels_.Has(run); }  // any thread

  // So many runs, and cancels of runs, have come to their end.
  int64_t ends() const { return ends_; }

 private:
  RunId last_ = 0;
  DoneRuns done_;
  RunOutcomes outcomes_;  // of runs that did not end well
  RunSet cancelled_;      // by a call of this rank
  PendingCancels pending_cancels_;
  int64_t ends_ = 0;
  std::array<int, static_cast<size_t>(4 * Session::kMaxRunsInFlight)> transfers_{};  // by number
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_RUN_HISTORY_H_
