// One round of progress, the ends of runs, failure and stalls.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/clock.h"
#include "session/session_impl.h"

namespace sluice {

absl::Status SessionImpl::Poison(const absl::Status& status) {
  if (!poison_.ok()) return poison_;
  watch_.RaiseAlarm(status);
  return TakePoison(status);
}

absl::Status SessionImpl::TakePoison(const absl::Status& status) {
  poison_ = status;
  if (runner_ != nullptr) runner_->Poison(status);
  for (const auto& run : runs_) run->Fail(status);
  for (StreamImpl* const stream : streams_) stream->Fail(status);
  poisoned_.store(true, std::memory_order_release);
  // What others still have under way with this rank ends as soon as it parts from them.
  Settle();
  return poison_;
}

absl::Status SessionImpl::CheckAlarm() {
  if (absl::Status status = watch_.Poll(MonotonicNs()); !status.ok()) return Poison(status);
  if (!watch_.alarm().ok()) return TakePoison(watch_.alarm());
  if (absl::Status status = fabric_->CheckRanks(); !status.ok()) return Poison(status);
  return absl::OkStatus();
}

bool SessionImpl::Settle() {
  for (StreamImpl* const stream : streams_) stream->Settle();
  return runner_ == nullptr || runner_->Settle();
}

absl::StatusOr<bool> SessionImpl::Advance() {
  if (absl::Status status = CheckAlarm(); !status.ok()) return status;
  const bool streamed = !streams_.empty() && AdvanceStreams();
  if (runs_.empty() && collectives_.empty() && !runner_->busy()) return streamed;
  absl::StatusOr<bool> settled = AdvanceCollectives();
  if (!settled.ok()) return settled;
  absl::StatusOr<bool> moved = runner_->Poll();
  if (!moved.ok()) return Poison(moved.status());
  if (EndRuns() || *settled || *moved) {
    ++moves_;
    NoteMove();
    return true;
  }
  const absl::StatusOr<bool> stalled = CheckStall();
  return stalled.ok() ? absl::StatusOr<bool>(streamed) : stalled;
}

int SessionImpl::TransferOf(RunId id) const {
  if (const TransferRun* const run = FindRun(id)) return Find(&run->transfer())->number;
  const RunId kept = static_cast<RunId>(transfer_of_run_.size());
  return last_run_ - id < kept ? transfer_of_run_[static_cast<size_t>(id % kept)] : -1;
}

void SessionImpl::Refuse(TransferRun* run, const absl::Status& status) {
  run->Fail(status);
  End(run, status);
}

bool SessionImpl::EndRuns() {
  bool any = false;
  for (size_t i = 0; i < runs_.size();) {
    TransferRun* const run = runs_[i].get();
    if (!run->done() || pending_cancels_.Has(run->id())) {
      ++i;
      continue;
    }
    if (run->in_stream()) {
      const absl::StatusOr<bool> ordered = runner_->EndInStream(run);
      if (!ordered.ok()) {
        Poison(ordered.status()).IgnoreError();
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

void SessionImpl::End(TransferRun* run, const absl::Status& status) {
  runner_->Remove(run);
  if (!status.ok()) outcomes_.Add(run->id(), status);
  done_.Add(run->id());
  ++ends_;
  transfer_of_run_[static_cast<size_t>(run->id()) % transfer_of_run_.size()] =
      Find(&run->transfer())->number;
  const auto owned = std::find_if(runs_.begin(), runs_.end(),
                                  [run](const auto& each) { return each.get() == run; });
  spare_runs_.push_back(std::move(*owned));
  runs_.erase(owned);
}

BucketReport SessionImpl::Report(const BucketQuestion& question) const {
  BucketReport report = StandingOf(question);
  report.moves = moves_;
  return report;
}

BucketReport SessionImpl::StandingOf(const BucketQuestion& question) const {
  BucketReport report;
  const RunId id = static_cast<RunId>(question.id.fields().run);
  if (id > last_run_) {
    report.state = BucketState::kRunNotStarted;
    report.last_run = last_run_;
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
  report.stage = outcomes_.Of(id).ok() ? Stage::kDone : Stage::kCancelled;
  return report;
}

void SessionImpl::NoteMove() {
  last_look_ns_ = MonotonicNs();
  idle_ns_ = 0;
  watch_.StopAsking();
}

absl::StatusOr<bool> SessionImpl::CheckStall() {
  // A caller that stays away for long has not looked: of such a time little counts, so that one
  // look after it cannot find a stall.
  const int64_t timeout_ns = absl::ToInt64Nanoseconds(options_.timeout);
  const int64_t now_ns = MonotonicNs();
  // Who waits for ranks that get on with older buckets is not stalled, however long that takes.
  if (watch_.TakeMoves()) idle_ns_ = 0;
  idle_ns_ += std::min(now_ns - std::exchange(last_look_ns_, now_ns), timeout_ns / 8);
  if (idle_ns_ > timeout_ns / 8 && FindQuestion()) watch_.Ask(question_, members_, now_ns);
  // An agreement has a deadline of its own, unless nobody waits for it.
  const bool agrees = comparing_ && collectives_.front().kind != Collective::Kind::kKeepStep;
  if (idle_ns_ <= timeout_ns || agrees) return false;
  if (runs_.empty() && !runner_->busy() && !AreCollectivesAwaited()) return false;
  const std::string answers = watch_.Describe(now_ns);
  return Poison(absl::DeadlineExceededError(
      absl::StrCat("rank ", rank(), " saw no progress for ", absl::FormatDuration(options_.timeout),
                   "; ", answers, answers.empty() ? "" : "\n", runner_->DescribeStall())));
}

bool SessionImpl::FindQuestion() {
  if (runner_->OldestBucket(&question_, &members_)) return true;
  const bool compares = comparing_ && collectives_.front().kind == Collective::Kind::kCompareViews;
  if (!compares && !IsStepAwaited()) return false;
  // Do they compare at all, or have they started another transfer?
  const RunId run = collectives_.front().run;
  question_ = {BucketId({.run = static_cast<uint64_t>(run)}), TransferOf(run), 0};
  members_.resize(static_cast<size_t>(size()));
  std::iota(members_.begin(), members_.end(), 0);
  return true;
}

}  // namespace sluice
