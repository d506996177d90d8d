// One round of progress, the ends of runs, and stalls.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/base/clock.h"
#include "session/transfer/transfers.h"

namespace sluice {

absl::StatusOr<bool> Transfers::Advance() {
  const absl::StatusOr<bool> settled = AdvanceCollectives();
  if (!settled.ok()) return settled;
  const absl::StatusOr<bool> moved = runner_->Poll();
  if (!moved.ok()) return peers_->Poison(moved.status());
  if (EndRuns() || *settled || *moved) {
    ++moves_;
    NoteMove();
    return true;
  }
  if (absl::Status status = CheckStall(); !status.ok()) return status;
  return false;
}

void Transfers::Fail(const absl::Status& status) {
  runner_->Poison(status);
  for (const auto& run : runs_) run->Fail(status);
}

int Transfers::TransferOf(RunId id) const {
  const TransferRun* const run = FindRun(id);
  return run == nullptr ? history_.TransferOf(id) : Find(&run->transfer())->number;
}

void Transfers::Refuse(TransferRun* run, const absl::Status& status) {
  run->Fail(status);
  End(run, status);
}

bool Transfers::EndRuns() {
  bool any = false;
  for (size_t i = 0; i < runs_.size();) {
    TransferRun* const run = runs_[i].get();
    if (!run->done() || history_.IsCancelPending(run->id())) {
      ++i;
      continue;
    }
    if (run->in_stream()) {
      const absl::StatusOr<bool> ordered = runner_->EndInStream(run);
      if (!ordered.ok()) {
        peers_->Poison(ordered.status()).IgnoreError();
        return true;
      }
      if (!*ordered) {
        ++i;
        continue;
      }
    }
    any = true;
    absl::Status status;
    if (run->cut()) {
      status = RunOutcomes::Cancelled(run->id());
      run->Fail(status);
    }
    End(run, status);
  }
  return any;
}

void Transfers::End(TransferRun* run, const absl::Status& status) {
  runner_->Remove(run);
  history_.End(run->id(), Find(&run->transfer())->number, status);
  const auto owned = std::find_if(runs_.begin(), runs_.end(),
                                  [run](const auto& each) { return each.get() == run; });
  spare_runs_.push_back(std::move(*owned));
  runs_.erase(owned);
}

BucketReport Transfers::Report(const BucketQuestion& question) const {
  BucketReport report = StandingOf(question);
  report.moves = moves_;
  return report;
}

BucketReport Transfers::StandingOf(const BucketQuestion& question) const {
  BucketReport report;
  const RunId id = static_cast<RunId>(question.id.fields().run);
  if (id > history_.last()) {
    report.state = BucketState::kRunNotStarted;
    report.last_run = history_.last();
    return report;
  }
  const TransferRun* const run = FindRun(id);
  const int transfer = TransferOf(id);
  if (transfer < 0) return report;
  if (transfer != question.transfer) {
    report.state = BucketState::kOtherTransfer;
    report.transfer = transfer;
    return report;
  }
  if (run != nullptr) return runner_->Report(*run, question.id);
  report.state = BucketState::kInStage;
  report.stage = history_.OutcomeOf(id).ok() ? Stage::kDone : Stage::kCancelled;
  return report;
}

void Transfers::NoteMove() {
  stall_clock_.NoteMove(MonotonicNs());
  peers_->watch()->StopAsking();
}

absl::Status Transfers::CheckStall() {
  const int64_t now_ns = MonotonicNs();
  if (peers_->watch()->TakeMoves()) stall_clock_.NoteOthersMoved();
  stall_clock_.NoteIdle(now_ns);
  if (stall_clock_.IsTimeToAsk() && runner_->IsHeldByCaller()) stall_clock_.NoteHeldByCaller();
  if (stall_clock_.IsTimeToAsk() && FindQuestion()) {
    peers_->watch()->Ask(question_, members_, now_ns);
  }
  // An agreement has a deadline of its own, unless nobody waits for it.
  const bool agrees = comparing_ && collectives_.front().kind != Collective::Kind::kKeepStep;
  if (!stall_clock_.IsStalled() || agrees || !AwaitsRanks()) return absl::OkStatus();
  const std::string answers = peers_->watch()->Describe(now_ns);
  return peers_->Poison(absl::DeadlineExceededError(absl::StrCat(
      "rank ", peers_->rank(), " saw no progress for ", absl::FormatDuration(options_->timeout),
      "; ", answers, answers.empty() ? "" : "\n", runner_->DescribeStall())));
}

bool Transfers::FindQuestion() {
  if (runner_->OldestBucket(&question_, &members_)) return true;
  const bool compares = comparing_ && collectives_.front().kind == Collective::Kind::kCompareViews;
  if (!compares && !IsStepAwaited()) return false;
  // Do they compare at all, or have they started another transfer?
  const RunId run = collectives_.front().run;
  question_ = {BucketId({.run = static_cast<uint64_t>(run)}), TransferOf(run), 0};
  members_.resize(static_cast<size_t>(peers_->size()));
  std::iota(members_.begin(), members_.end(), 0);
  return true;
}

}  // namespace sluice
