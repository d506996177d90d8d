// What all ranks do in the order of their calls: comparisons and cancels.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/backoff.h"
#include "session/clock.h"
#include "session/session_impl.h"

namespace sluice {

absl::Status SessionImpl::Cancel(RunId id) {
  if (!poison_.ok()) return poison_;
  if (absl::Status status = CheckRun(id); !status.ok()) return status;
  if (!cancelled_.insert(id).second) {
    return absl::FailedPreconditionError(absl::StrCat("run ", id, " has been cancelled before"));
  }
  if (cancelled_.size() > kOutcomesMax) cancelled_.erase(cancelled_.begin());
  collectives_.push_back({Collective::Kind::kCancel, id, absl::OkStatus()});
  NoteMove();
  return absl::OkStatus();
}

absl::Status SessionImpl::FinishCancels() {
  Backoff backoff;
  while (poison_.ok() && runs_.empty() && !collectives_.empty()) {
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

absl::StatusOr<bool> SessionImpl::AdvanceCollective() {
  if (collectives_.empty()) return false;
  if (!comparing_) return BeginCollective(collectives_.front());
  if (!agreement_.Poll()) return false;
  comparing_ = false;
  if (agreement_.out_of_step()) return Poison(agreement_.outcome());
  const Collective ended = std::move(collectives_.front());
  collectives_.pop_front();
  // Every rank can cancel what all have started.
  const bool compared = ended.kind == Collective::Kind::kCompareViews;
  if (!compared && !agreement_.outcome().ok()) return Poison(agreement_.outcome());
  TransferRun* const run = FindRun(ended.run);
  if (ended.kind == Collective::Kind::kCancel) {
    collectives_.push_front({Collective::Kind::kCut, ended.run, absl::OkStatus()});
  } else if (ended.kind == Collective::Kind::kCut) {
    if (run != nullptr && run->frozen()) runner_->Cut(run, agreement_.largest_bucket());
  } else if (agreement_.outcome().ok()) {
    Find(&run->transfer())->agreed = true;
    run->Release();
  } else {
    Refuse(run, agreement_.outcome());
  }
  return true;
}

absl::StatusOr<bool> SessionImpl::BeginCollective(const Collective& front) {
  TransferRun* const run = FindRun(front.run);
  if (front.kind == Collective::Kind::kCompareViews && Find(&run->transfer())->agreed) {
    return SkipComparison(run);
  }
  Proposal proposal;
  proposal.status = front.status;
  if (front.kind != Collective::Kind::kCompareViews) {
    proposal.call = "Cancel";
    proposal.values = {{"the run to cancel", front.run}};
    if (front.kind == Collective::Kind::kCut) {
      proposal.bucket =
          run == nullptr || run->done() ? LastBucketOf(front.run) : runner_->Freeze(run);
    }
  } else {
    proposal.call = "Start";
    compared_ = absl::StrCat("the transfer to start as run ", front.run);
    proposal.values = {{"the number of runs started", front.run},
                       {compared_, Find(&run->transfer())->number}};
  }
  absl::Status status = agreement_.Start(std::move(proposal), options_.timeout);
  if (!status.ok()) return Poison(status);
  comparing_ = true;
  return true;
}

absl::StatusOr<bool> SessionImpl::SkipComparison(TransferRun* run) {
  const absl::Status bound = std::move(collectives_.front().status);
  collectives_.pop_front();
  if (!bound.ok()) return Poison(bound);
  run->Release();
  return true;
}

BucketId SessionImpl::LastBucketOf(RunId run) const {
  const int transfer = TransferOf(run);
  if (transfer < 0) return BucketId();  // so long ago that no rank has any of it left
  const std::vector<Bucket>& buckets = transfers_[static_cast<size_t>(transfer)]->plan().buckets;
  if (buckets.empty()) return BucketId();
  return buckets.back().id.WithRun(static_cast<uint64_t>(run));
}

bool SessionImpl::IsCancelPending(RunId run) const {
  for (const Collective& collective : collectives_) {
    if (collective.run == run) return true;
  }
  return false;
}

}  // namespace sluice
