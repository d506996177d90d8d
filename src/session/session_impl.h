// One rank's session: a front for its peers, transfers, streams and checkpoints.
#ifndef SLUICE_SRC_SESSION_SESSION_IMPL_H_
#define SLUICE_SRC_SESSION_SESSION_IMPL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/fair_lock.h"
#include "plan/plan.h"
#include "session/base/fork_guard.h"
#include "session/base/idle_wait.h"
#include "session/checkpoint/checkpoints.h"
#include "session/connect/call_door.h"
#include "session/limits.h"
#include "session/peers/peers.h"
#include "session/stream/streams.h"
#include "session/transfer/transfers.h"
#include "sluice/checkpoint.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "sluice/testing.h"
#include "trace/joined_log.h"
#include "transport/direct/direct_transport.h"

namespace sluice {

// What plans do with bytes that several ranks need.
enum class PlanKind : uint8_t {
  kRelay,  // they cross between nodes once for all ranks of a node, and are passed on there
  kNaive,  // each rank gets them straight from a rank that holds them
};

// Errors are those of Session::Create.
absl::StatusOr<std::unique_ptr<Session>> CreateSession(std::unique_ptr<Fabric> fabric,
                                                       const SessionOptions& options,
                                                       PlanKind kind);

// Checks that a call is allowed, drives the machines, and passes calls on to them. Each machine
// has its own state.
class SessionImpl final : public Session, public CallDoor, private Peers::Host {
 public:
  SessionImpl(std::unique_ptr<Fabric> fabric, const SessionOptions& options, PlanKind kind);
  ~SessionImpl() override = default;

  // Compares the options on all ranks, then opens what runs need. No other call before it is OK.
  absl::Status Open();
  int rank() const override { return peers_.rank(); }
  int size() const override { return peers_.size(); }
  const SessionOptions& options() const override { return options_; }
  int64_t slots() const override { return budget_.slots; }
  int64_t slot_bytes() const override { return budget_.slot_bytes; }

  absl::StatusOr<Transfer*> Compile(const TransferSpec& spec) override;
  absl::Status Drop(Transfer* transfer) override;
  absl::StatusOr<RunId> StartRun(Transfer* transfer, absl::Span<const TensorView> src,
                                 absl::Span<const TensorView> dst,
                                 const StartOptions& options) override;
  absl::Status SupplyRun(RunId id, int tensor, const TensorView& dst) override;
  bool TakeEvent(Event* event, RunId* run) override;
  absl::Status CancelRun(RunId id) override;
  absl::Status Poll() override;
  absl::StatusOr<bool> WaitForRun(RunId run, absl::Duration limit) override;
  bool IsRunDone(RunId run) const override { return is_poisoned() || transfers_->IsDone(run); }
  absl::StatusOr<std::shared_ptr<std::byte>> AllocateShared(int64_t bytes) override;
  absl::Status Close() override;
  absl::StatusOr<std::unique_ptr<Stream>> OpenStream(const StreamOptions& options,
                                                     const InjectedDelay& delay) override;
  absl::StatusOr<CheckpointStats> LoadCheckpoint(const std::string& uri,
                                                 absl::Span<const CheckpointTensor> tensors,
                                                 const CheckpointOptions& options) override;
  absl::StatusOr<CheckpointStats> SaveCheckpoint(const std::string& directory,
                                                 absl::Span<const CheckpointTensor> tensors,
                                                 const CheckpointOptions& options) override;
  absl::Status MakeCall(absl::string_view call, Work work) override;
  void NameViews(int64_t binding) override { binding_ = binding; }
  absl::StatusOr<MemoryRules> CurrentMemoryRules() const override;
  TraceLog* trace() override { return trace_.get(); }
  SessionReport Report() const override { return report_; }
  SessionCounters counters() const override { return transfers_->counters(); }
  void ResetCounters() override { transfers_->ResetCounters(); }

  // ---- For whoever drives the session.

  // One round of progress; true if anything moved. Not once the session is poisoned.
  absl::StatusOr<bool> Advance();
  // How to pause when nothing did. Of whoever drives it alone: with a progress thread, a caller's
  // Wait finds the run done.
  IdleWait* idle_wait() { return &idle_wait_; }
  Awaited awaited() const;
  int64_t next_due_ns() const override { return streams_.next_due_ns(); }
  // From now on a thread of the session's drives it, and all calls are made under `lock`.
  void set_lock(FairLock* lock) { streams_.set_lock(lock); }
  // So many runs, and cancels of runs, have come to their end.
  int64_t ends() const { return transfers_->history().ends(); }
  // Any thread.
  const ForkGuard& fork_guard() const { return fork_guard_; }
  bool is_poisoned() const { return peers_.is_poisoned(); }
  absl::Status CheckRun(RunId id) const { return transfers_->history().Check(id); }
  // The first error wins, reaches every rank, and stays. Returns the one that has won.
  absl::Status Poison(const absl::Status& status) { return peers_.Poison(status); }
  // Of a poisoned session: true once nothing is under way here, nor for other ranks with this one.
  bool Settle() override;

 private:
  // What plans go by; of the budget, what is known of it by now.
  PlanOptions PlanOptionsNow() const;
  absl::StatusOr<int64_t> SmallestCacheShare();
  absl::Status OpenTransfers(std::unique_ptr<Device> device);

  // Not OK in a forked child, and once the session is poisoned.
  absl::Status CheckUsable() const;
  // Of a collective call that takes no run beside it: carries on what the ranks still owe each
  // other of earlier calls.
  absl::Status BeginCall(absl::string_view call);
  // The poisoning error if there is one.
  absl::Status AdvanceWhile(const std::function<bool()>& is_owed);
  // Runs in streams are done before the device is.
  absl::Status FinishDeviceWork();
  absl::Status Pump();

  bool AdvanceStreams() override { return streams_.Advance(); }
  bool has_streams() const override { return streams_.open() > 0; }
  void Fail(const absl::Status& status) override;

  const ForkGuard fork_guard_;
  const SessionOptions options_;
  const PlanKind kind_;
  IdleWait idle_wait_;
  Peers peers_;                            // first, as the others use it until their end
  std::unique_ptr<JoinedTraceLog> trace_;  // null: none is wanted
  Budget budget_;
  bool is_closed_ = false;                // by Close: no stream begins any more
  int64_t binding_ = 0;                   // of the views of the next run; 0: they have none
  int64_t cache_bytes_ = 0;               // the smallest share of any rank; 0: not agreed on yet
  const int max_in_flight_;               // of a channel; 0: automatic
  std::unique_ptr<Transfers> transfers_;  // null until it is open
  DirectTransport* direct_ = nullptr;     // of its transport; null: messages alone
  SessionReport report_;                  // of what it has opened
  Streams streams_;
  Checkpoints checkpoints_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SESSION_IMPL_H_
