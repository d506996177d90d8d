// One rank's dealings with the others beside buckets: agreements, alarms, and the session's
// failure.
#ifndef SLUICE_SRC_SESSION_PEERS_PEERS_H_
#define SLUICE_SRC_SESSION_PEERS_PEERS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "session/base/backoff.h"
#include "session/base/idle_wait.h"
#include "session/peers/agreement.h"
#include "session/peers/stall_clock.h"
#include "session/peers/watch.h"
#include "sluice/fabric.h"
#include "sluice/transport.h"

namespace sluice {

// Thread: the session's.
class Peers {
 public:
  // The session, as its peers know it.
  class Host {
   public:
    virtual ~Host() = default;
    // Streams go on while a call waits for other ranks. One round of progress; true if any moved.
    virtual bool AdvanceStreams() = 0;
    virtual bool has_streams() const = 0;
    // When something of streams is due, on MonotonicNs's clock; INT64_MAX: nothing is.
    virtual int64_t next_due_ns() const = 0;
    // The session has failed: whatever is under way here has that error.
    virtual void Fail(const absl::Status& status) = 0;
    // One round of progress towards an end of what has failed; true once nothing is under way.
    virtual bool Settle() = 0;
  };

  // `timeout`: how long other ranks may be silent. `patience`: how long ranks are waited for that
  // answer. `host` must outlive this object.
  Peers(std::unique_ptr<Fabric> fabric, absl::Duration timeout, Host* host,
        absl::Duration patience = absl::InfiniteDuration());
  // In a forked child the ends of connections are the parent's, too, and stay.

  int rank() const { return fabric_->rank(); }
  int size() const { return fabric_->size(); }
  absl::Duration timeout() const { return timeout_; }
  Fabric* fabric() const { return fabric_.get(); }
  Host* host() { return host_; }
  Watch* watch() { return &watch_; }
  // How calls that block pause. A progress thread pauses elsewhere.
  IdleWait* call_wait() { return &call_wait_; }

  // ---- Agreements. One at a time.

  // Compares across ranks, waiting for them. Poisons only if the ranks are out of step then. A rank
  // is waited for while it answers that it is late, up to the patience. Otherwise it has the
  // timeout. After an alarm of another rank the outcome is not OK.
  absl::Status Agree(Proposal proposal);
  // That all ranks are well.
  absl::Status AgreeOn(const absl::Status& own, const char* call);
  // All ranks' records, of any length, if all are well. ResourceExhausted, on all ranks, where they
  // are too long together (RecordExchange); that does not poison.
  absl::StatusOr<std::vector<std::string>> Exchange(const absl::Status& own,
                                                    const std::string& record, const char* call);
  // The payload that `other` brought to the last agreement.
  std::string payload(int other) const { return agreement_.payload(other); }
  // For agreements that nobody waits for.
  Agreement* agreement() { return &agreement_; }
  // Ends the agreement under way for want of ranks, and says how these answer. `after`: what has
  // passed.
  void GiveUpAgreement(absl::Duration after);
  // Finds the question about the agreement under way, and whom to ask: all ranks. If they are more
  // than kMaxMembersAsked, ranks that have not come to the agreement are first.
  void FindLate(BucketQuestion* question, std::vector<int>* ranks);

  // While there is one, this rank is in a call that waits for other ranks and that they make, too.
  // Answers to questions say so. `call` must outlive it.
  class CallScope {
   public:
    CallScope(Peers* peers, absl::string_view call)
        : peers_(peers), outer_(std::exchange(peers->call_, call)) {}
    ~CallScope() { peers_->call_ = outer_; }
    CallScope(const CallScope&) = delete;
    CallScope& operator=(const CallScope&) = delete;

   private:
    Peers* const peers_;
    const absl::string_view outer_;
  };
  // The call that this rank is in; empty: none.
  absl::string_view call() const { return call_; }

  // A transport of its own, with a tag for each pair of ranks. Collective. Its error poisons.
  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport();

  // Pauses while other ranks are waited for. Streams go on.
  void PauseFor(Backoff* backoff);

  // ---- Failure. The first error wins, reaches every rank, and stays.

  // Returns the error that has won.
  absl::Status Poison(const absl::Status& status);
  // The poisoning error if there is one, also another rank's of which word has come just now.
  absl::Status CheckAlarm();
  // The same without a look at who has ended: word of other ranks' failures alone.
  absl::Status HearAlarm();
  const absl::Status& poison() const { return poison_; }
  // Thread: any.
  bool is_poisoned() const { return poisoned_.load(std::memory_order_acquire); }

 private:
  absl::Status TakePoison(const absl::Status& status);
  // Exchanges records of ranks that are all in `call`, so that none of them is late, only silent.
  absl::Status ExchangeLong(const std::string& record, const char* call,
                            std::vector<std::string>* records);
  // Asks ranks that are late; true once this one has waited long enough.
  bool IsWaitOver(StallClock* clock);

  std::unique_ptr<Fabric> fabric_;
  const absl::Duration timeout_;
  const absl::Duration patience_;
  Host* const host_;
  Agreement agreement_;
  Watch watch_;
  absl::string_view call_;
  BucketQuestion question_;   // of Agree
  std::vector<int> members_;  // that it goes to
  IdleWait call_wait_;
  absl::Status poison_;
  std::atomic<bool> poisoned_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_PEERS_PEERS_H_
