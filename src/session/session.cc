// Calls that name a run, and the functions beside Session: each passes on to a session.
#include "absl/status/status.h"
#include "session/session_door.h"
#include "session/session_impl.h"
#include "sluice/run.h"

namespace sluice {
namespace {

absl::Status NoRun() { return absl::InvalidArgumentError("this Run names no run"); }

absl::Status NoSession() { return absl::InvalidArgumentError("no session"); }

}  // namespace

absl::StatusOr<Run> Session::Start(Transfer* transfer, absl::Span<const TensorView> src,
                                   absl::Span<const TensorView> dst, const StartOptions& options) {
  const absl::StatusOr<int64_t> run = StartRun(transfer, src, dst, options);
  if (!run.ok()) return run.status();
  return Run(this, *run);
}

bool Session::PollEvent(Event* event) {
  int64_t run = 0;
  if (!TakeEvent(event, &run)) return false;
  event->run = Run(this, run);
  return true;
}

absl::Status Run::Wait() const { return WaitFor(absl::InfiniteDuration()).status(); }

absl::StatusOr<bool> Run::WaitFor(absl::Duration limit) const {
  if (session_ == nullptr) return NoRun();
  return session_->WaitForRun(number_, limit);
}

bool Run::IsDone() const { return session_ == nullptr || session_->IsRunDone(number_); }

absl::Status Run::Supply(int tensor, const TensorView& dst) const {
  return session_ == nullptr ? NoRun() : session_->SupplyRun(number_, tensor, dst);
}

absl::Status Run::Cancel() const {
  return session_ == nullptr ? NoRun() : session_->CancelRun(number_);
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(std::unique_ptr<Fabric> fabric,
                                                         const SessionOptions& options) {
  return CreateSession(std::move(fabric), options, PlanKind::kRelay);
}

absl::StatusOr<std::unique_ptr<Session>> CreateNaiveSession(std::unique_ptr<Fabric> fabric,
                                                            const SessionOptions& options) {
  return CreateSession(std::move(fabric), options, PlanKind::kNaive);
}

absl::StatusOr<std::unique_ptr<Stream>> OpenStream(Session* session, const StreamOptions& options) {
  return OpenDelayedStream(session, options, InjectedDelay());
}

absl::StatusOr<std::unique_ptr<Stream>> OpenDelayedStream(Session* session,
                                                          const StreamOptions& options,
                                                          const InjectedDelay& delay) {
  if (session == nullptr) return NoSession();
  return SessionDoor::Open(session, options, delay);
}

absl::StatusOr<CheckpointStats> LoadCheckpoint(Session* session, const std::string& uri,
                                               absl::Span<const CheckpointTensor> tensors,
                                               const CheckpointOptions& options) {
  if (session == nullptr) return NoSession();
  return SessionDoor::Load(session, uri, tensors, options);
}

absl::StatusOr<CheckpointStats> SaveCheckpoint(Session* session, const std::string& directory,
                                               absl::Span<const CheckpointTensor> tensors,
                                               const CheckpointOptions& options) {
  if (session == nullptr) return NoSession();
  return SessionDoor::Save(session, directory, tensors, options);
}

}  // namespace sluice
