// One rank's session: drives its peers, transfers, streams and checkpoints.
#ifndef SLUICE_SRC_SESSION_SESSION_IMPL_H_
#define SLUICE_SRC_SESSION_SESSION_IMPL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/fair_lock.h"
#include "plan/plan.h"
#include "session/base/fork_guard.h"
#include "session/base/idle_wait.h"
#include "session/base/run_id.h"
#include "session/checkpoint/checkpoints.h"
#include "session/limits.h"
#include "session/peers/peers.h"
#include "session/stream/streams.h"
#include "session/transfer/transfers.h"
#include "sluice/run.h"
#include "sluice/session.h"
#include "trace/joined_log.h"
#include "transport/direct/direct_transport.h"
#include "transport/say_once.h"

namespace sluice {

class ProgressThread;

// The way in which plans carry bytes that several ranks need.
enum class PlanKind : uint8_t {
  kRelay,  // they cross between nodes once for all ranks of a node, and are passed on there
  kNaive,  // each rank gets them straight from a rank that holds them
};

// Behind each Session. Session's functions are made of Use, CallAll, and of the machines, each of
// which has its own state.
//
// With a progress thread, all but what any thread may call is done under a lock. Use and CallAll
// take the lock, as do functions that say so. The others are called under it.
class SessionImpl final : private Peers::Host {
 public:
  // Errors are those of Session::Create.
  static absl::StatusOr<std::unique_ptr<Session>> Create(std::unique_ptr<Fabric> fabric,
                                                         const SessionOptions& options,
                                                         PlanKind kind);
  // The implementation of a session that is not null.
  static SessionImpl* Of(const Session* session) { return session->impl_.get(); }

  SessionImpl(std::unique_ptr<Fabric> fabric, const SessionOptions& options, PlanKind kind);
  ~SessionImpl() override;

  // ---- Calls. In a forked child they fail before they take the lock, which a thread that is not
  // there may hold for ever.

  // `work` returns a status, or a value or a status.
  template <typename Work>
  auto Use(Work work) -> decltype(work()) {
    if (absl::Status status = fork_guard_.Check(); !status.ok()) return status;
    const std::unique_lock<FairLock> lock = Lock();
    return work();
  }
  // The same about runs: not once the session is poisoned. The thread looks at what is new.
  template <typename Work>
  auto UseRuns(Work work) -> decltype(work()) {
    auto result = Use([&]() -> decltype(work()) {
      if (is_poisoned()) return peers_.poison();
      return work();
    });
    WakeThread();
    return result;
  }
  // Collective, without a run beside it: `work` comes after what the ranks still owe each other of
  // earlier calls. `call` must outlive the call.
  template <typename Work>
  auto CallAll(absl::string_view call, Work work) -> decltype(work()) {
    return Use([&]() -> decltype(work()) {
      const Peers::CallScope scope(&peers_, call);
      if (absl::Status status = BeginCall(call); !status.ok()) return status;
      return work();
    });
  }

  // As Session::Start. `binding`: as TransferRun::Bind has it. Takes the lock, as all here do.
  static absl::StatusOr<Run> Start(Session* session, Transfer* transfer,
                                   absl::Span<const TensorView> src,
                                   absl::Span<const TensorView> dst, int64_t binding,
                                   const StartOptions& options);
  absl::StatusOr<bool> WaitForRun(RunId run, absl::Duration limit);
  absl::StatusOr<std::unique_ptr<Stream>> OpenStream(const StreamOptions& options,
                                                     const InjectedDelay& delay);
  absl::Status Close();

  // Without a thread: nothing.
  std::unique_lock<FairLock> Lock() { return Hold(lock_.get()); }
  void WakeThread() {
    if (lock_ != nullptr && !fork_guard_.InChild()) idle_wait_.Wake();
  }

  // ---- Functions that any thread may call.

  // The run need not have been started. True as well once the session has failed.
  bool IsRunDone(RunId run) const { return is_poisoned() || transfers_->IsDone(run); }
  bool is_poisoned() const { return peers_.is_poisoned(); }
  const ForkGuard& fork_guard() const { return fork_guard_; }
  // A forked child has no thread, and its lock may be held.
  bool has_lost_thread() const { return lock_ != nullptr && fork_guard_.InChild(); }
  const SessionOptions& options() const { return options_; }
  const Budget& budget() const { return budget_; }
  const SessionReport& report() const { return report_; }

  // ---- The machines.

  Peers* peers() { return &peers_; }
  Transfers* transfers() { return transfers_.get(); }
  Checkpoints* checkpoints() { return &checkpoints_; }
  DirectTransport* direct() { return direct_; }
  JoinedTraceLog* trace() { return trace_.get(); }

  // ---- For whoever drives the session.

  // One round of progress; true if anything moved. Not once the session is poisoned.
  absl::StatusOr<bool> Advance();
  // The same, or of a poisoned session one towards its end. Returns the poisoning error.
  absl::Status Poll();
  // The pauses of the session's driver, for when nothing moved, and of nobody else. With a progress
  // thread, a caller's Wait finds the run done.
  IdleWait* idle_wait() { return &idle_wait_; }
  Awaited awaited() const;
  int64_t next_due_ns() const override { return streams_.next_due_ns(); }
  // So many runs, and cancels of runs, have come to their end.
  int64_t ends() const { return transfers_->history().ends(); }
  // For a poisoned session: true once nothing is under way here, nor for other ranks with this one.
  bool Settle() override;
  // Runs in streams are done before the device is.
  absl::Status FinishDeviceWork();

 private:
  // Compares the options on all ranks, then opens what runs need. No other call before it is OK.
  absl::Status Open();
  // The options that plans go by, with the part of the budget that is known by now.
  PlanOptions PlanOptionsNow() const;
  absl::StatusOr<int64_t> SmallestCacheShare();
  absl::Status OpenTransfers(std::unique_ptr<Device> device);

  absl::Status BeginCall(absl::string_view call);
  // The poisoning error if there is one.
  absl::Status AdvanceWhile(const std::function<bool()>& is_owed);
  absl::Status Pump();
  absl::Status EndAll();
  // For a caller that waits for the run, and has not seen it move.
  void SayWait(RunId run);
  // The first error wins, reaches every rank, and stays. Returns the one that has won.
  absl::Status Poison(const absl::Status& status) { return peers_.Poison(status); }

  bool AdvanceStreams() override { return streams_.Advance(); }
  bool has_streams() const override { return streams_.open() > 0; }
  void Fail(const absl::Status& status) override;

  const ForkGuard fork_guard_;
  const SessionOptions options_;
  const PlanKind kind_;
  const std::unique_ptr<FairLock> lock_;  // null: no thread is wanted
  IdleWait idle_wait_;
  struct {
    RunId run = 0;
    int64_t moves = 0;      // of the session, when the wait began
    int64_t since_ns = 0;   // then
    int64_t looked_ns = 0;  // when the caller last waited: a caller may wait piece by piece
    LongWait line;
  } wait_;
  Peers peers_;                            // before the others, which use it until their end
  std::unique_ptr<JoinedTraceLog> trace_;  // null: none is wanted
  Budget budget_;
  bool is_closed_ = false;                // by Close: no stream begins any more
  int64_t cache_bytes_ = 0;               // the smallest share of any rank; 0: not agreed on yet
  const int max_in_flight_;               // of a channel; 0: automatic
  std::unique_ptr<Transfers> transfers_;  // null until it is open
  DirectTransport* direct_ = nullptr;     // of its transport; null: messages alone
  SessionReport report_;                  // of what it has opened
  Streams streams_;
  Checkpoints checkpoints_;
  std::unique_ptr<ProgressThread> thread_;  // the last, as it uses the others; null: no lock either
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SESSION_IMPL_H_
