// Keeps what is asked for of runs after their end.
#include "session/transfer/run_history.h"

#include "absl/strings/str_cat.h"

namespace sluice {

absl::Status RunHistory::Check(RunId run) const {
  if (run >= 1 && run <= last_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there is no run ", run));
}

void RunHistory::End(RunId run, int transfer, const absl::Status& status) {
  if (!status.ok()) outcomes_.Add(run, status);
  done_.Add(run);
  ++ends_;
  transfers_[static_cast<size_t>(run) % transfers_.size()] = transfer;
}

int RunHistory::TransferOf(RunId run) const {
  const RunId kept = static_cast<RunId>(transfers_.size());
  return last_ - run < kept ? transfers_[static_cast<size_t>(run % kept)] : -1;
}

bool RunHistory::BeginCancel(RunId run) {
  if (!cancelled_.Insert(run)) return false;
  pending_cancels_.Add(run);
  return true;
}

void RunHistory::EndCancel(RunId run) {
  pending_cancels_.Remove(run);
  ++ends_;
}

}  // namespace sluice
