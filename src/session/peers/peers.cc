// Waits for other ranks, and spreads the first error.
#include "session/peers/peers.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"
#include "transport/say_once.h"

namespace sluice {

Peers::Peers(std::unique_ptr<Fabric> fabric, absl::Duration timeout, Host* host,
             absl::Duration patience)
    : fabric_(std::move(fabric)),
      timeout_(timeout),
      patience_(patience),
      host_(host),
      agreement_(fabric_.get()),
      watch_(fabric_.get(), timeout) {}

absl::Status Peers::Agree(Proposal proposal) {
  absl::Status status = agreement_.Start(std::move(proposal), absl::InfiniteDuration());
  if (!status.ok()) return Poison(status);
  Backoff backoff;
  StallClock clock(timeout_, patience_);
  clock.NoteMove(MonotonicNs());
  LongWait long_wait;
  while (!agreement_.Poll()) {
    if (status = CheckAlarm(); !status.ok()) return status;
    if (IsWaitOver(&clock)) {
      GiveUpAgreement(clock.limit());
    } else {
      long_wait.Look([this] { return agreement_.Awaits(); });
      PauseFor(&backoff);
    }
  }
  watch_.StopAsking();
  if (agreement_.out_of_step()) return Poison(agreement_.outcome());
  if (!agreement_.outcome().ok()) return agreement_.outcome();
  // The others' parts may be what they had told before they gave up.
  return HearAlarm();
}

// Other work of the other ranks is no progress of this call.
bool Peers::IsWaitOver(StallClock* clock) {
  const int64_t now_ns = MonotonicNs();
  if (watch_.TakeLateness(now_ns)) clock->NoteLateness();
  clock->NoteIdle(now_ns);
  if (clock->IsTimeToAsk()) {
    FindLate(&question_, &members_);
    watch_.Ask(question_, members_, now_ns);
  }
  return clock->IsStalled();
}

void Peers::FindLate(BucketQuestion* question, std::vector<int>* ranks) {
  *question = {BucketId({.run = static_cast<uint64_t>(watch_.last_run())}), 0, 0,
               agreement_.number()};
  ranks->resize(static_cast<size_t>(size()));
  std::iota(ranks->begin(), ranks->end(), 0);
  if (ranks->size() <= Watch::kMaxMembersAsked) return;
  const std::vector<int>& missing = agreement_.FindMissing();
  std::stable_partition(ranks->begin(), ranks->end(), [&missing](int rank) {
    return std::binary_search(missing.begin(), missing.end(), rank);
  });
}

void Peers::GiveUpAgreement(absl::Duration after) {
  const std::vector<int> missing = agreement_.FindMissing();
  const int64_t now_ns = MonotonicNs();
  agreement_.GiveUp(after, ErrorText(watch_.Describe(now_ns, &missing), watch_.Advise(now_ns)));
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
  // One byte more: a payload without bytes says that the record does not fit.
  if (record.size() < Proposal::kMaxPayloadBytes) proposal.payload = absl::StrCat("=", record);
  if (absl::Status status = Agree(std::move(proposal)); !status.ok()) return status;
  std::vector<std::string> records;
  records.reserve(static_cast<size_t>(size()));
  bool all_fit = true;
  for (int other = 0; other < size(); ++other) {
    const std::string payload = agreement_.payload(other);
    all_fit = all_fit && !payload.empty();
    if (all_fit) records.push_back(payload.substr(1));
  }
  if (all_fit) return records;
  if (absl::Status s = ExchangeLong(record, call, &records); !s.ok()) return s;
  return records;
}

absl::Status Peers::ExchangeLong(const std::string& record, const char* call,
                                 std::vector<std::string>* records) {
  RecordExchange exchange(fabric_.get());
  absl::Status status = exchange.Start(record);
  Deadline deadline(timeout_);
  Backoff backoff;
  std::vector<int> missing;
  for (int64_t gathers = 0; status.ok();) {
    const absl::StatusOr<bool> done = exchange.Poll(records, &missing);
    if (done.ok() && *done) return HearAlarm();
    if (status = done.status(); !status.ok()) break;
    if (absl::Status alarm = CheckAlarm(); !alarm.ok()) return alarm;
    if (exchange.gathers() > gathers) {
      gathers = exchange.gathers();
      deadline = Deadline(timeout_);
      backoff.Reset();
    } else if (deadline.Passed()) {
      return Poison(MakeError(absl::StatusCode::kDeadlineExceeded, NamedRanks(missing),
                              " did not call ", call, " within ", absl::FormatDuration(timeout_)));
    }
    PauseFor(&backoff);
  }
  if (!exchange.out_of_step()) return status;
  HearAlarm().IgnoreError();  // whoever has ended may have said why
  return Poison(status);
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
  // Operations that others still have under way with this rank end as soon as it parts from them.
  host_->Settle();
  return poison_;
}

absl::Status Peers::HearAlarm() {
  if (absl::Status status = watch_.Poll(MonotonicNs()); !status.ok()) return Poison(status);
  if (!watch_.alarm().ok()) return TakePoison(watch_.alarm());
  return poison_;
}

absl::Status Peers::CheckAlarm() {
  if (absl::Status status = HearAlarm(); !status.ok()) return status;
  if (absl::Status status = fabric_->CheckRanks(); !status.ok()) return Poison(status);
  return poison_;
}

}  // namespace sluice
