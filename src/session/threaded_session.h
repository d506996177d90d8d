// A session with a progress thread: a shell that takes the lock and passes calls on.
#ifndef SLUICE_SRC_SESSION_THREADED_SESSION_H_
#define SLUICE_SRC_SESSION_THREADED_SESSION_H_

#include <memory>
#include <mutex>
#include <utility>

#include "base/fair_lock.h"
#include "session/progress_thread.h"
#include "session/session_impl.h"

namespace sluice {

// Decides nothing. Once its thread has ended, after Close or a failure, the caller drives the
// session as without one.
class ThreadedSession final : public Session, public CallDoor {
 public:
  // `session` is open. ResourceExhausted if there is no thread for it.
  static absl::StatusOr<std::unique_ptr<Session>> Create(std::unique_ptr<SessionImpl> session);

  int rank() const override { return session_->rank(); }
  int size() const override { return session_->size(); }
  const SessionOptions& options() const override { return session_->options(); }
  int64_t slots() const override { return session_->slots(); }
  int64_t slot_bytes() const override { return session_->slot_bytes(); }

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
  bool IsRunDone(RunId run) const override { return session_->IsRunDone(run); }
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
  void NameViews(int64_t binding) override;
  absl::StatusOr<MemoryRules> CurrentMemoryRules() const override;
  TraceLog* trace() override { return CheckFork().ok() ? trace_.get() : nullptr; }
  SessionReport Report() const override { return session_->Report(); }
  SessionCounters counters() const override;
  void ResetCounters() override;

 private:
  class LockedTrace;
  using Lock = std::lock_guard<FairLock>;

  explicit ThreadedSession(std::unique_ptr<SessionImpl> session);

  // Before the lock: in a forked child a thread that is not there may hold it for ever.
  absl::Status CheckFork() const { return session_->fork_guard().Check(); }

  const std::unique_ptr<SessionImpl> session_;
  mutable FairLock lock_;
  std::unique_ptr<TraceLog> trace_;                // null: none is wanted
  ProgressThread thread_{session_.get(), &lock_};  // the last, as it uses the others
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_THREADED_SESSION_H_
