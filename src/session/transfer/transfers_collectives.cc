// What all ranks do in the order of their calls: comparisons, cancels, and not getting too far
// ahead.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/backoff.h"
#include "session/clock.h"
#include "session/session_impl.h"

namespace sluice {

absl::Status SessionImpl::Cancel(RunId id) {
  if (absl::Status status = CheckUsable(); !status.ok()) return status;
  if (absl::Status status = CheckRun(id); !status.ok()) return status;
  if (!cancelled_.Insert(id)) {
    return absl::FailedPreconditionError(absl::StrCat("run ", id, " has been cancelled before"));
  }
  Collective cancel{Collective::Kind::kCancel, id};
  // By the time that the others ask, it may be forgotten which transfer the run was of.
  if (FindRun(id) == nullptr) cancel.over_after = LastBucketOf(id);
  pending_cancels_.Add(id);
  collectives_.push_back(std::move(cancel));
  NoteMove();
  // The others need not wait for this rank's next call to hear of this one. An error is that of the
  // next call.
  AdvanceCollectives().IgnoreError();
  return absl::OkStatus();
}

absl::Status SessionImpl::FinishCollectives() {
  if (absl::Status status = fork_guard_.Check(); !status.ok()) return status;
  Backoff backoff;
  while (poison_.ok() && runs_.empty() && !collectives_.empty()) {
    // What comes next has a deadline of its own, which begins with the call.
    if (comparing_) agreement_.LimitTo(options_.timeout);
    if (Advance().value_or(false)) {
      backoff.Reset();
    } else {
      backoff.Pause();
    }
  }
  return poison_;
}

absl::Status SessionImpl::FinishCancels() {
  const auto is_cancel = [](const Collective& each) {
    return each.kind == Collective::Kind::kCancel || each.kind == Collective::Kind::kCut;
  };
  Backoff backoff;
  while (poison_.ok() && runs_.empty() &&
         std::any_of(collectives_.begin(), collectives_.end(), is_cancel)) {
    if (comparing_) agreement_.LimitTo(options_.timeout);
    if (Advance().value_or(false)) {
      backoff.Reset();
    } else {
      backoff.Pause();
    }
  }
  return poison_;
}

absl::Status SessionImpl::Agree(Proposal proposal) {
  if (absl::Status status = agreement_.Start(std::move(proposal), options_.timeout); !status.ok()) {
    return Poison(status);
  }
  Backoff backoff;
  while (!agreement_.Poll()) {
    if (absl::Status status = CheckAlarm(); !status.ok()) return status;
    PauseFor(&backoff);
  }
  if (agreement_.out_of_step()) return Poison(agreement_.outcome());
  return agreement_.outcome();
}

absl::StatusOr<bool> SessionImpl::AdvanceCollectives() {
  for (bool moved = false;; moved = true) {
    if (collectives_.empty()) return moved;
    if (!comparing_) {
      if (absl::Status status = BeginCollective(collectives_.front()); !status.ok()) return status;
      continue;
    }
    if (!agreement_.Poll()) return moved;
    if (absl::Status status = EndCollective(); !status.ok()) return status;
  }
}

absl::Status SessionImpl::EndCollective() {
  comparing_ = false;
  if (agreement_.out_of_step()) return Poison(agreement_.outcome());
  const Collective ended = std::move(collectives_.front());
  collectives_.pop_front();
  TransferRun* const run = FindRun(ended.run);
  if (ended.kind == Collective::Kind::kCompareViews) {
    if (agreement_.outcome().ok()) {
      Find(&run->transfer())->agreed = true;
      Release(run);
    } else {
      Refuse(run, agreement_.outcome());
    }
    return absl::OkStatus();
  }
  // Every rank can start a run, and cancel what all have started.
  if (!agreement_.outcome().ok()) return Poison(agreement_.outcome());
  switch (ended.kind) {
    case Collective::Kind::kCompareViews:
      break;
    case Collective::Kind::kKeepStep:
      started_everywhere_ = ended.run;
      for (const RunId id : std::exchange(held_back_, {})) Release(FindRun(id));
      break;
    case Collective::Kind::kCancel:
      collectives_.push_front({Collective::Kind::kCut, ended.run, {}, ended.over_after});
      break;
    case Collective::Kind::kCut:
      if (run != nullptr && run->frozen()) runner_->Cut(run, agreement_.largest_bucket());
      pending_cancels_.Remove(ended.run);
      ++ends_;
      break;
  }
  return absl::OkStatus();
}

absl::Status SessionImpl::BeginCollective(const Collective& front) {
  TransferRun* const run = FindRun(front.run);
  if (front.kind == Collective::Kind::kCompareViews && Find(&run->transfer())->agreed) {
    return SkipComparison(run);
  }
  Proposal proposal;
  proposal.status = front.status;
  absl::Duration timeout = options_.timeout;
  switch (front.kind) {
    case Collective::Kind::kCancel:
      proposal.call = "Cancel";
      proposal.values = {{"the run to cancel", front.run}};
      break;
    case Collective::Kind::kCut:
      proposal.call = "Cancel";
      proposal.values = {{"the run to cancel", front.run}};
      proposal.bucket = LastWanted(front, run);
      // Their calls have been compared, so they have called.
      proposal.lacking = absl::StrCat("called Cancel of run ", front.run, " but did not poll");
      break;
    case Collective::Kind::kKeepStep:
      timeout = absl::InfiniteDuration();  // nobody waits yet
      [[fallthrough]];
    case Collective::Kind::kCompareViews:
      proposal.call = "Start";
      compared_ = absl::StrCat("the transfer to start as run ", front.run);
      proposal.values = {{"the number of runs started", front.run},
                         {compared_, TransferOf(front.run)}};
      break;
  }
  absl::Status status = agreement_.Start(std::move(proposal), timeout);
  if (!status.ok()) return Poison(status);
  comparing_ = true;
  return absl::OkStatus();
}

// What this rank still needs of a run that is cancelled: everything up to this bucket.
BucketId SessionImpl::LastWanted(const Collective& cut, TransferRun* run) {
  if (cut.over_after) return *cut.over_after;
  if (run == nullptr) return BucketId();  // refused, on all ranks
  return run->done() ? LastBucketOf(cut.run) : runner_->Freeze(run);
}

absl::Status SessionImpl::SkipComparison(TransferRun* run) {
  const absl::Status bound = std::move(collectives_.front().status);
  collectives_.pop_front();
  if (!bound.ok()) return Poison(bound);
  Release(run);
  return absl::OkStatus();
}

void SessionImpl::KeepStep() {
  if (last_run_ % kMaxRunsInFlight == 0) {
    collectives_.push_back({Collective::Kind::kKeepStep, last_run_});
  }
}

void SessionImpl::Release(TransferRun* run) {
  if (run->id() < started_everywhere_ + 2 * kMaxRunsInFlight) {
    run->Release();
  } else {
    held_back_.push_back(run->id());
  }
}

bool SessionImpl::IsStepAwaited() const {
  return comparing_ && collectives_.front().kind == Collective::Kind::kKeepStep &&
         AreCollectivesAwaited();
}

bool SessionImpl::AreCollectivesAwaited() const {
  return !held_back_.empty() ||
         std::any_of(collectives_.begin(), collectives_.end(), [](const Collective& each) {
           return each.kind != Collective::Kind::kKeepStep;
         });
}

BucketId SessionImpl::LastBucketOf(RunId run) const {
  // All ranks have started as many runs as this one when they cancel it, and no rank has any left
  // that is so far back.
  if (last_run_ - run >= kMaxRunsInFlight) return BucketId();
  const auto transfer = transfers_.find(TransferOf(run));
  if (transfer == transfers_.end()) return BucketId();  // dropped: all its runs were over
  const std::vector<Bucket>& buckets = transfer->second->plan().buckets;
  if (buckets.empty()) return BucketId();
  return buckets.back().id.WithRun(static_cast<uint64_t>(run));
}

}  // namespace sluice
