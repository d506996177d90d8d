// Waits for other ranks, and spreads the first error.
#include "session/peers/peers.h"

#include <utility>

#include "session/base/clock.h"

namespace sluice {

Peers::Peers(std::unique_ptr<Fabric> fabric, absl::Duration timeout, Host* host)
    : fabric_(std::move(fabric)),
      timeout_(timeout),
      host_(host),
      agreement_(fabric_.get()),
      watch_(fabric_.get(), timeout) {}

Peers::~Peers() {
  if (fork_guard_.InChild()) static_cast<void>(fabric_.release());
}

absl::Status Peers::Agree(Proposal proposal) {
  if (absl::Status status = agreement_.Start(std::move(proposal), timeout_); !status.ok()) {
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

absl::Status Peers::AgreeOn(const absl::Status& own, const char* call) {
  Proposal proposal;
  proposal.call = call;
  proposal.status = own;
  return Agree(std::move(proposal));
}

absl::StatusOr<std::vector<std::string>> Peers::Exchange(const absl::Status& own,
                                                         const std::string& record,
                                                         const char* call) {
  Proposal proposal;
  proposal.call = call;
  proposal.status = own;
  proposal.payload = record;
  if (absl::Status status = Agree(std::move(proposal)); !status.ok()) return status;
  std::vector<std::string> records;
  records.reserve(static_cast<size_t>(size()));
  for (int other = 0; other < size(); ++other) records.push_back(payload(other));
  return records;
}

absl::StatusOr<std::unique_ptr<Transport>> Peers::OpenTransport() {
  absl::StatusOr<std::unique_ptr<Transport>> transport = fabric_->OpenTransport();
  if (!transport.ok()) return Poison(transport.status());
  if (absl::Status status = (*transport)->Reserve(size()); !status.ok()) return Poison(status);
  return transport;
}

void Peers::PauseFor(Backoff* backoff) {
  if (!host_->AdvanceStreams()) backoff->Pause();
}

absl::Status Peers::Poison(const absl::Status& status) {
  if (!poison_.ok()) return poison_;
  watch_.RaiseAlarm(status);
  return TakePoison(status);
}

absl::Status Peers::TakePoison(const absl::Status& status) {
  // Later alarms come too: all that fail tell the others.
  if (!poison_.ok()) return poison_;
  poison_ = status;
  host_->Fail(status);
  poisoned_.store(true, std::memory_order_release);
  // What others still have under way with this rank ends as soon as it parts from them.
  host_->Settle();
  return poison_;
}

absl::Status Peers::CheckAlarm() {
  if (absl::Status status = watch_.Poll(MonotonicNs()); !status.ok()) return Poison(status);
  if (!watch_.alarm().ok()) return TakePoison(watch_.alarm());
  if (absl::Status status = fabric_->CheckRanks(); !status.ok()) return Poison(status);
  return poison_;
}

}  // namespace sluice
