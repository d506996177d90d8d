// The calls of users: of Session, of runs by their numbers, and the functions beside Session.
#include "sluice/session.h"

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "session/base/moved_memory.h"
#include "session/run_transport.h"
#include "session/session_impl.h"
#include "sluice/checkpoint.h"
#include "sluice/run.h"
#include "sluice/stream.h"
#include "sluice/testing.h"

namespace sluice {
namespace {

absl::Status NoRun() { return absl::InvalidArgumentError("this Run names no run"); }

absl::Status NoSession() { return absl::InvalidArgumentError("no session"); }

}  // namespace

Session::Session(std::unique_ptr<SessionImpl> impl) : impl_(std::move(impl)) {}

Session::~Session() {
  // A forked child lacks the threads of its parent. There their std::thread cannot be joined, and
  // a condition variable on which one waited cannot be destroyed.
  if (impl_->fork_guard().InChild()) static_cast<void>(impl_.release());
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(std::unique_ptr<Fabric> fabric,
                                                         const SessionOptions& options) {
  return SessionImpl::Create(std::move(fabric), options, PlanKind::kRelay);
}

absl::StatusOr<std::unique_ptr<Session>> CreateNaiveSession(std::unique_ptr<Fabric> fabric,
                                                            const SessionOptions& options) {
  return SessionImpl::Create(std::move(fabric), options, PlanKind::kNaive);
}

int Session::rank() const { return impl_->peers()->rank(); }

int Session::size() const { return impl_->peers()->size(); }

const SessionOptions& Session::options() const { return impl_->options(); }

int64_t Session::slots() const { return impl_->budget().slots; }

int64_t Session::slot_bytes() const { return impl_->budget().slot_bytes; }

SessionReport Session::Report() const { return impl_->report(); }

// ---- Transfers and runs.

absl::StatusOr<Transfer*> Session::Compile(const TransferSpec& spec) {
  return impl_->CallAll("Compile", [&]() -> absl::StatusOr<Transfer*> {
    if (absl::Status status = impl_->FinishDeviceWork(); !status.ok()) return status;
    return impl_->transfers()->Compile(spec);
  });
}

absl::Status Session::Drop(Transfer* transfer) {
  return impl_->CallAll("Drop", [&]() -> absl::Status {
    if (absl::Status status = impl_->FinishDeviceWork(); !status.ok()) return status;
    return impl_->transfers()->Drop(transfer);
  });
}

absl::StatusOr<Run> Session::Start(Transfer* transfer, const SourceViews& src,
                                   absl::Span<const TensorView> dst, const StartOptions& options) {
  if (options.version) return absl::InvalidArgumentError("a version is for Connection::Start");
  std::vector<TensorView> memory;
  return SessionImpl::Start(this, transfer, src.views(&memory), dst, /*binding=*/0, options);
}

bool Session::PollEvent(Event* event) {
  if (impl_->fork_guard().InChild()) return false;
  const auto lock = impl_->Lock();
  RunId run = 0;
  if (!impl_->transfers()->PollEvent(event, &run)) return false;
  event->run = Run(this, run);
  return true;
}

absl::Status Session::Poll() {
  return impl_->Use([&] { return impl_->Poll(); });
}

absl::Status Run::Wait() const { return WaitFor(absl::InfiniteDuration()).status(); }

absl::StatusOr<bool> Run::WaitFor(absl::Duration limit) const {
  if (session_ == nullptr) return NoRun();
  return SessionImpl::Of(session_)->WaitForRun(number_, limit);
}

bool Run::IsDone() const {
  return session_ == nullptr || SessionImpl::Of(session_)->IsRunDone(number_);
}

absl::Status Run::Supply(int tensor, const TensorView& dst) const {
  if (session_ == nullptr) return NoRun();
  SessionImpl* const impl = SessionImpl::Of(session_);
  return impl->UseRuns([&] { return impl->transfers()->Supply(number_, tensor, dst); });
}

absl::Status Run::Cancel() const {
  if (session_ == nullptr) return NoRun();
  SessionImpl* const impl = SessionImpl::Of(session_);
  return impl->UseRuns([&] { return impl->transfers()->Cancel(number_); });
}

// ---- Memory, streams, checkpoints.

absl::StatusOr<std::shared_ptr<std::byte>> Session::AllocateShared(int64_t bytes) {
  return impl_->CallAll("AllocateShared", [&] {
    return AllocateSharedMemory(impl_->peers(), impl_->direct(), bytes);
  });
}

absl::StatusOr<std::shared_ptr<std::byte>> Session::Share(absl::Span<TensorView> views) {
  const absl::StatusOr<MovedMemory> move = MovedMemory::Make(views);
  if (!move.ok()) return Refuse("AllocateShared", move.status());
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> memory, AllocateShared(move->bytes()));
  move->MoveTo(memory.get());
  return memory;
}

absl::StatusOr<std::shared_ptr<std::byte>> Session::Unshare(absl::Span<TensorView> views) {
  SLUICE_ASSIGN_OR_RETURN(const MovedMemory move, MovedMemory::Make(views));
  if (move.bytes() == 0) return nullptr;
  constexpr std::align_val_t kAlignment{64};
  void* const memory = operator new(static_cast<size_t>(move.bytes()), kAlignment, std::nothrow);
  if (memory == nullptr) return absl::ResourceExhaustedError("no memory for the views");
  move.MoveTo(static_cast<std::byte*>(memory));
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(memory),
                                    [](std::byte* block) { operator delete(block, kAlignment); });
}

absl::StatusOr<std::unique_ptr<Stream>> OpenStream(Session* session, const StreamOptions& options) {
  return OpenDelayedStream(session, options, InjectedDelay());
}

absl::StatusOr<std::unique_ptr<Stream>> OpenDelayedStream(Session* session,
                                                          const StreamOptions& options,
                                                          const InjectedDelay& delay) {
  if (session == nullptr) return NoSession();
  return SessionImpl::Of(session)->OpenStream(options, delay);
}

absl::StatusOr<CheckpointStats> LoadCheckpoint(Session* session, const std::string& uri,
                                               absl::Span<const CheckpointTensor> tensors,
                                               const CheckpointOptions& options) {
  if (session == nullptr) return NoSession();
  SessionImpl* const impl = SessionImpl::Of(session);
  return impl->CallAll("LoadCheckpoint", [&] {
    const MemoryRules rules = impl->transfers()->MemoryRulesNow();
    return impl->checkpoints()->Load(uri, tensors, options, rules);
  });
}

absl::StatusOr<CheckpointInfo> ReadCheckpointInfo(Session* session, const std::string& uri,
                                                  const CheckpointOptions& options) {
  if (session == nullptr) return NoSession();
  SessionImpl* const impl = SessionImpl::Of(session);
  return impl->CallAll("ReadCheckpointInfo",
                       [&] { return impl->checkpoints()->Info(uri, options); });
}

absl::StatusOr<CheckpointStats> SaveCheckpoint(Session* session, const std::string& directory,
                                               absl::Span<const CheckpointTensor> tensors,
                                               const CheckpointOptions& options) {
  if (session == nullptr) return NoSession();
  SessionImpl* const impl = SessionImpl::Of(session);
  return impl->CallAll("SaveCheckpoint", [&] {
    const MemoryRules rules = impl->transfers()->MemoryRulesNow();
    return impl->checkpoints()->Save(directory, tensors, options, rules);
  });
}

// ---- What a session has recorded, and its end.

TraceLog* Session::trace() { return impl_->has_lost_thread() ? nullptr : impl_->trace(); }

SessionCounters Session::counters() const {
  if (impl_->has_lost_thread()) return {};
  const auto lock = impl_->Lock();
  return impl_->transfers()->counters();
}

void Session::ResetCounters() {
  if (impl_->has_lost_thread()) return;
  const auto lock = impl_->Lock();
  impl_->transfers()->ResetCounters();
}

absl::Status Session::Refuse(absl::string_view call, const absl::Status& why) {
  return impl_->CallAll(call, [&] {
    const absl::Status own = why.ok() ? absl::InvalidArgumentError("Refuse without an error") : why;
    return impl_->peers()->AgreeOn(own, std::string(call).c_str());
  });
}

absl::Status Session::Close() { return impl_->Close(); }

}  // namespace sluice
