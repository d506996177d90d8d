// Calls that all ranks make in one order: comparisons, cancels, and not getting too far ahead.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/transfer/transfers.h"

namespace sluice {

bool Transfers::HasCancels() const {
  const auto is_cancel = [](const Collective& each) {
    return each.kind == Collective::Kind::kCancel || each.kind == Collective::Kind::kCut;
  };
  return runs_.empty() && std::any_of(collectives_.begin(), collectives_.end(), is_cancel);
}

void Transfers::AwaitCollectives(bool awaits) {
  if (awaits && !awaits_all_) NoteMove();  // waiting begins here
  awaits_all_ = awaits;
}

absl::StatusOr<bool> Transfers::AdvanceCollectives() {
  for (bool moved = false;; moved = true) {
    if (collectives_.empty()) return moved;
    if (!comparing_) {
      if (absl::Status status = BeginCollective(collectives_.front()); !status.ok()) return status;
      continue;
    }
    if (!peers_->agreement()->Poll()) return moved;
    if (absl::Status status = EndCollective(); !status.ok()) return status;
  }
}

absl::Status Transfers::EndCollective() {
  comparing_ = false;
  if (peers_->agreement()->out_of_step()) return peers_->Poison(peers_->agreement()->outcome());
  const Collective ended = std::move(collectives_.front());
  collectives_.pop_front();
  TransferRun* const run = FindRun(ended.run);
  if (ended.kind == Collective::Kind::kCompareViews) {
    if (peers_->agreement()->outcome().ok()) {
      Find(&run->transfer())->agreed = true;
      Release(run);
    } else {
      Refuse(run, peers_->agreement()->outcome());
    }
    return absl::OkStatus();
  }
  // Every rank can start a run, and cancel what all have started.
  if (!peers_->agreement()->outcome().ok()) return peers_->Poison(peers_->agreement()->outcome());
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
      if (run != nullptr && run->frozen()) runner_->Cut(run, peers_->agreement()->largest_bucket());
      history_.EndCancel(ended.run);
      break;
  }
  return absl::OkStatus();
}

absl::Status Transfers::BeginCollective(const Collective& front) {
  TransferRun* const run = FindRun(front.run);
  if (front.kind == Collective::Kind::kCompareViews && Find(&run->transfer())->agreed) {
    return SkipComparison(run);
  }
  Proposal proposal;
  proposal.status = front.status;
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
    case Collective::Kind::kCompareViews:
      proposal.call = "Start";
      compared_ = absl::StrCat("the transfer to start as run ", front.run);
      proposal.values = {{"the number of runs started", front.run},
                         {compared_, TransferOf(front.run)}};
      break;
  }
  // How long it may take is a matter of the stall clock.
  absl::Status status = peers_->agreement()->Start(std::move(proposal), absl::InfiniteDuration());
  if (!status.ok()) return peers_->Poison(status);
  comparing_ = true;
  return absl::OkStatus();
}

// The last bucket that this rank still needs of a cancelled run: it needs all up to this one.
BucketId Transfers::LastWanted(const Collective& cut, TransferRun* run) {
  if (cut.over_after) return *cut.over_after;
  if (run == nullptr) return BucketId();  // refused, on all ranks
  return run->done() ? LastBucketOf(cut.run) : runner_->Freeze(run);
}

absl::Status Transfers::SkipComparison(TransferRun* run) {
  const absl::Status bound = std::move(collectives_.front().status);
  collectives_.pop_front();
  if (!bound.ok()) return peers_->Poison(bound);
  Release(run);
  return absl::OkStatus();
}

void Transfers::KeepStep() {
  if (history_.last() % Session::kMaxRunsInFlight == 0) {
    collectives_.push_back({Collective::Kind::kKeepStep, history_.last()});
  }
}

void Transfers::Release(TransferRun* run) {
  if (run->id() < started_everywhere_ + 2 * Session::kMaxRunsInFlight) {
    run->Release();
  } else {
    held_back_.push_back(run->id());
  }
}

bool Transfers::AreCollectivesAwaited() const {
  return (awaits_all_ && !collectives_.empty()) || !held_back_.empty() ||
         std::any_of(collectives_.begin(), collectives_.end(), [](const Collective& each) {
           return each.kind != Collective::Kind::kKeepStep;
         });
}

BucketId Transfers::LastBucketOf(RunId run) const {
  // All ranks have started as many runs as this one when they cancel it, and no rank has any left
  // that is so far back.
  if (history_.last() - run >= Session::kMaxRunsInFlight) return BucketId();
  const auto transfer = transfers_.find(TransferOf(run));
  if (transfer == transfers_.end()) return BucketId();  // dropped: all its runs were over
  const std::vector<Bucket>& buckets = transfer->second->plan().buckets;
  if (buckets.empty()) return BucketId();
  return buckets.back().id.WithRun(static_cast<uint64_t>(run));
}

}  // namespace sluice
