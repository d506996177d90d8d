// Calls that share a session with its progress thread.
#include "session/threaded_session.h"

#include <string>

#include "transport/deadline.h"

namespace sluice {

// What the thread records may be read at any time.
class ThreadedSession::LockedTrace final : public TraceLog {
 public:
  LockedTrace(TraceLog* trace, FairLock* lock) : trace_(trace), lock_(lock) {}

  int rank() const override { return trace_->rank(); }
  int64_t capacity() const override { return trace_->capacity(); }
  int64_t size() const override {
    const Lock lock(*lock_);
    return trace_->size();
  }
  int64_t dropped() const override {
    const Lock lock(*lock_);
    return trace_->dropped();
  }
  std::string Serialize() const override {
    const Lock lock(*lock_);
    return trace_->Serialize();
  }
  void Clear() override {
    const Lock lock(*lock_);
    trace_->Clear();
  }

 private:
  TraceLog* const trace_;
  FairLock* const lock_;
};

ThreadedSession::ThreadedSession(std::unique_ptr<SessionImpl> session)
    : session_(std::move(session)) {
  session_->set_lock(&lock_);
  if (TraceLog* const trace = session_->trace(); trace != nullptr) {
    trace_ = std::make_unique<LockedTrace>(trace, &lock_);
  }
}

absl::StatusOr<std::unique_ptr<Session>> ThreadedSession::Create(
    std::unique_ptr<SessionImpl> session) {
  std::unique_ptr<ThreadedSession> threaded(new ThreadedSession(std::move(session)));
  if (absl::Status status = threaded->thread_.Start(); !status.ok()) {
    return threaded->session_->Poison(status);
  }
  return threaded;
}

absl::StatusOr<Transfer*> ThreadedSession::Compile(const TransferSpec& spec) {
  if (absl::Status status = CheckFork(); !status.ok()) return status;
  const Lock lock(lock_);
  return session_->Compile(spec);
}

absl::Status ThreadedSession::Drop(Transfer* transfer) {
  if (absl::Status status = CheckFork(); !status.ok()) return status;
  const Lock lock(lock_);
  return session_->Drop(transfer);
}

absl::StatusOr<RunId> ThreadedSession::StartRun(Transfer* transfer,
                                                absl::Span<const TensorView> src,
                                                absl::Span<const TensorView> dst,
                                                const StartOptions& options) {
  if (absl::Status status = CheckFork(); !status.ok()) return status;
  absl::StatusOr<RunId> run;
  {
    const Lock lock(lock_);
    run = session_->StartRun(transfer, src, dst, options);
  }
  thread_.Wake();
  return run;
}

// Only the session's thread reads the number, in StartRun.
void ThreadedSession::NameViews(int64_t binding) { session_->NameViews(binding); }

absl::Status ThreadedSession::SupplyRun(RunId id, int tensor, const TensorView& dst) {
  if (absl::Status status = CheckFork(); !status.ok()) return status;
  absl::Status status;
  {
    const Lock lock(lock_);
    status = session_->SupplyRun(id, tensor, dst);
  }
  thread_.Wake();
  return status;
}

bool ThreadedSession::TakeEvent(Event* event, RunId* run) {
  if (!CheckFork().ok()) return false;
  const Lock lock(lock_);
  return session_->TakeEvent(event, run);
}

absl::Status ThreadedSession::CancelRun(RunId id) {
  if (absl::Status status = CheckFork(); !status.ok()) return status;
  absl::Status status;
  {
    const Lock lock(lock_);
    status = session_->CancelRun(id);
  }
  thread_.Wake();
  return status;
}

absl::Status ThreadedSession::Poll() {
  if (absl::Status status = CheckFork(); !status.ok()) return status;
  const Lock lock(lock_);
  return session_->Poll();
}

absl::StatusOr<bool> ThreadedSession::WaitForRun(RunId run, absl::Duration limit) {
  if (absl::Status status = CheckFork(); !status.ok()) return status;
  const Deadline deadline(limit);
  {
    const Lock lock(lock_);
    if (absl::Status status = session_->CheckRun(run); !status.ok()) return status;
  }
  if (!thread_.SleepUntilDone(run, limit)) return false;
  const Lock lock(lock_);
  return session_->WaitForRun(run, deadline.Left());
}

absl::StatusOr<std::shared_ptr<std::byte>> ThreadedSession::AllocateShared(int64_t bytes) {
  if (absl::Status status = CheckFork(); !status.ok()) return status;
  const Lock lock(lock_);
  return session_->AllocateShared(bytes);
}

absl::Status ThreadedSession::Close() {
  if (absl::Status status = CheckFork(); !status.ok()) return status;
  absl::Status status;
  {
    const Lock lock(lock_);
    status = session_->Close();
  }
  if (status.ok() || session_->is_poisoned()) thread_.Join();
  return status;
}

absl::StatusOr<std::unique_ptr<Stream>> ThreadedSession::OpenStream(const StreamOptions& options,
                                                                    const InjectedDelay& delay) {
  if (absl::Status status = CheckFork(); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Stream>> stream;
  {
    const Lock lock(lock_);
    stream = session_->OpenStream(options, delay);
  }
  thread_.Wake();
  return stream;
}

// The caller's thread drives everything meanwhile.
absl::StatusOr<CheckpointStats> ThreadedSession::LoadCheckpoint(
    const std::string& uri, absl::Span<const CheckpointTensor> tensors,
    const CheckpointOptions& options) {
  if (absl::Status status = CheckFork(); !status.ok()) return status;
  const Lock lock(lock_);
  return session_->LoadCheckpoint(uri, tensors, options);
}

absl::StatusOr<CheckpointStats> ThreadedSession::SaveCheckpoint(
    const std::string& directory, absl::Span<const CheckpointTensor> tensors,
    const CheckpointOptions& options) {
  if (absl::Status status = CheckFork(); !status.ok()) return status;
  const Lock lock(lock_);
  return session_->SaveCheckpoint(directory, tensors, options);
}

absl::Status ThreadedSession::MakeCall(absl::string_view call, Work work) {
  if (absl::Status status = CheckFork(); !status.ok()) return status;
  const Lock lock(lock_);
  return session_->MakeCall(call, work);
}

absl::StatusOr<MemoryRules> ThreadedSession::CurrentMemoryRules() const {
  if (absl::Status status = CheckFork(); !status.ok()) return status;
  const Lock lock(lock_);
  return session_->CurrentMemoryRules();
}

SessionCounters ThreadedSession::counters() const {
  if (!CheckFork().ok()) return {};  // the thread may have held the lock
  const Lock lock(lock_);
  return session_->counters();
}

void ThreadedSession::ResetCounters() {
  if (!CheckFork().ok()) return;
  const Lock lock(lock_);
  session_->ResetCounters();
}

}  // namespace sluice
