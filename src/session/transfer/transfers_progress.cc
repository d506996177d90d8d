// One round of progress, the ends of runs, and stalls.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "session/transfer/transfers.h"
#include "tensor/error_text.h"

namespace sluice {

absl::StatusOr<bool> Transfers::Advance() {
  absl::StatusOr<bool> settled = AdvanceCollectives();
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
    // A rank that has failed may write again to memory that this run has read. A rank that has done
    // its part and ended harms nobody.
    if (!peers_->HearAlarm().ok()) return true;
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
  BucketReport report =
      question.agreement > 0 ? StandingInAgreement(question) : StandingOf(question);
  report.moves = moves_;
  report.call = std::string(peers_->call());
  return report;
}

// A rank that waits for runs which the asker has not started might wait for the asker.
BucketReport Transfers::StandingInAgreement(const BucketQuestion& question) const {
  BucketReport report;
  const bool has_called = peers_->agreement()->number() >= question.agreement;
  report.state = has_called ? BucketState::kCalled : BucketState::kNotCalled;
  report.is_late = !has_called && peers_->call().empty() &&
                   history_.last() <= static_cast<RunId>(question.id.fields().run);
  return report;
}

BucketReport Transfers::StandingOf(const BucketQuestion& question) const {
  BucketReport report;
  const RunId id = static_cast<RunId>(question.id.fields().run);
  if (id > history_.last()) {
    report.state = BucketState::kRunNotStarted;
    report.last_run = history_.last();
    report.is_late = peers_->call().empty();
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
  if (peers_->watch()->TakeLateness(now_ns)) stall_clock_.NoteLateness();
  stall_clock_.NoteIdle(now_ns);
  if (stall_clock_.IsTimeToAsk() && runner_->IsHeldByCaller()) stall_clock_.NoteHeldByCaller();
  if (stall_clock_.IsTimeToAsk() && FindQuestion()) {
    peers_->watch()->Ask(question_, members_, now_ns);
  }
  if (!stall_clock_.IsStalled() || !AwaitsRanks()) return absl::OkStatus();
  // That some have not called says more than what waits for it. But where a bucket waits, others
  // were asked for the bucket, and who has not called may be late.
  const bool no_bucket_waits = !runner_->OldestBucket(&question_, &members_);
  if (comparing_ && (awaits_all_ || (no_bucket_waits &&
                                     collectives_.front().kind != Collective::Kind::kKeepStep))) {
    peers_->GiveUpAgreement(stall_clock_.limit());
    if (absl::Status status = AdvanceCollectives().status(); !status.ok()) return status;
    NoteMove();  // they have called just now
    return absl::OkStatus();
  }
  const ErrorText answers(peers_->watch()->Describe(now_ns), peers_->watch()->Advise(now_ns));
  return peers_->Poison(MakeError(absl::StatusCode::kDeadlineExceeded, RankInWords(peers_->rank()),
                                  " saw no progress for ",
                                  absl::FormatDuration(stall_clock_.limit()), "; ", answers,
                                  answers.empty() ? "" : "\n", runner_->DescribeStall()));
}

bool Transfers::FindQuestion() {
  if (runner_->OldestBucket(&question_, &members_)) return true;
  if (!comparing_ || !AreCollectivesAwaited()) return false;
  peers_->FindLate(&question_, &members_);
  const Collective& front = collectives_.front();
  if (front.kind == Collective::Kind::kCancel || front.kind == Collective::Kind::kCut) return true;
  // Have they started the run, or another transfer as this run?
  question_ = {BucketId({.run = static_cast<uint64_t>(front.run)}), TransferOf(front.run)};
  return true;
}

}  // namespace sluice
