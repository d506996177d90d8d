// State that Python's sessions, transfers, runs and streams refer to.
#ifndef SLUICE_PYTHON_SRC_SESSION_H_
#define SLUICE_PYTHON_SRC_SESSION_H_

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "calls.h"
#include "sluice/checkpoint.h"
#include "sluice/connect.h"
#include "sluice/run.h"
#include "sluice/session.h"
#include "support.h"

namespace sluice::python {

// The owners of a connection's memory: by whether it is a target, and by name. Replaced as a whole,
// so that runs under way keep theirs.
using Owners = std::map<std::pair<bool, std::string>, Owner>;

class StreamState;

// A session with what has to outlive its runs. Everything is for the session's thread, with the
// GIL, unless it says otherwise.
class SessionState : public std::enable_shared_from_this<SessionState> {
 public:
  // The session belongs to the calling thread.
  static std::shared_ptr<SessionState> Make(std::unique_ptr<Session> session, uint64_t thread);
  // Closes the session, and waits at most its timeout for runs in flight. If it cannot be closed,
  // session and owners stay for ever: other ranks may still read or write their memory. Without
  // the GIL.
  ~SessionState();

  int rank() const { return rank_; }
  int size() const { return size_; }
  Desk& desk() { return desk_; }

  // The session, for a call of its own thread. Raises FailedPrecondition on another thread, in a
  // forked child, and once the session is closed.
  Session* Require();
  // The same for calls that any thread may make. They keep the GIL while they use it.
  Session* RequireAnywhere();
  bool closed() const { return closing_ || session_ == nullptr; }
  // Whether the calling thread is the session's.
  bool Mine() const { return ThreadNumber() == thread_; }
  bool MadeInThisProcess() const { return made_here_.Holds(); }
  // The number of the GPU that tensors may be in, or none. For any thread.
  std::optional<int> gpu() const {
    if (accelerator_ == nullptr || accelerator_->kind() != DeviceKind::kCuda) return std::nullopt;
    return accelerator_->ordinal();
  }
  bool has_progress_thread() const { return progress_thread_; }
  // How long to wait for runs in flight. If a rank is silent, the session's own timeout is first.
  absl::Duration close_limit() const { return timeout_ + absl::Seconds(2); }
  // The progress of the latest call that loads or saves. For any thread.
  CheckpointProgress& checkpoint_progress() { return checkpoint_progress_; }

  // A run that begins, and what keeps its memory.
  void Began(const Run& run, std::shared_ptr<const Owners> owners);
  void Supplied(int64_t run, Owner owner);
  // The run has ended well: its memory is free.
  void EndedWell(int64_t run);
  // Drops the owners of runs that have ended well meanwhile.
  void Sweep();

  void Add(const std::shared_ptr<StreamState>& stream) { streams_.push_back(stream); }
  // Closes the stream with the session's next call: Python has let go of it while one is under way.
  void CloseLater(std::shared_ptr<StreamState> stream) { orphans_.push_back(std::move(stream)); }

  // Waits for runs in flight, closes streams, and ends the session. DeadlineExceeded: a run is
  // still in flight after `limit`; then the session goes on. Raises on other threads.
  void Close(absl::Duration limit);

  // At the interpreter's end: closes all sessions that nobody is using, and leaves the others.
  static void CloseAll();

 private:
  struct Kept {
    Run run;
    std::shared_ptr<const Owners> owners;
    std::vector<Owner> supplied;
  };

  SessionState(std::unique_ptr<Session> session, uint64_t thread);
  // Without the GIL.
  absl::Status CloseStreams();
  absl::Status CloseSession(absl::Duration limit);
  void Leak();

  std::unique_ptr<Session> session_;
  const uint64_t thread_;
  const MadeHere made_here_;
  const int rank_;
  const int size_;
  const absl::Duration timeout_;
  const bool progress_thread_;
  const std::shared_ptr<Accelerator> accelerator_;
  std::atomic<bool> closing_ = false;  // set with the GIL
  CheckpointProgress checkpoint_progress_;
  std::map<int64_t, Kept> kept_;
  std::vector<std::weak_ptr<StreamState>> streams_;
  std::vector<std::shared_ptr<StreamState>> orphans_;
  Desk desk_;
};

class ConnectionState {
 public:
  ConnectionState(std::shared_ptr<SessionState> on, std::unique_ptr<Connection> made,
                  std::shared_ptr<const Owners> held)
      : session(std::move(on)), connection(std::move(made)), owners(std::move(held)) {}
  ~ConnectionState();

  const std::shared_ptr<SessionState> session;
  std::unique_ptr<Connection> connection;
  std::shared_ptr<const Owners> owners;
};

struct RunState {
  std::shared_ptr<SessionState> session;
  Run run;
  bool done = false;  // and well
};

struct MemoryState {
  std::shared_ptr<std::byte> data;
  size_t bytes = 0;
};

using PySession = Ref<SessionState>;
using PyConnection = Ref<ConnectionState>;
using PyRun = Ref<RunState>;

// Closes the stream when Python lets go of it: leases may keep its state for longer.
class PyStream : public Ref<StreamState> {
 public:
  using Ref<StreamState>::Ref;
  PyStream(PyStream&&) noexcept = default;
  ~PyStream();
};

SessionOptions SessionOptionsOf(nb::dict options);

void BindSession(nb::module_& module);
void BindTransfers(nb::module_& module);
void AddTransfers(nb::class_<PySession>& session);
void AddStreams(nb::class_<PySession>& session);
void AddCheckpoints(nb::class_<PySession>& session);
void BindReads(nb::module_& module);
void BindStreams(nb::module_& module);
void BindWorlds(nb::module_& module);
void BindChecksums(nb::module_& module);
void BindLines(nb::module_& module);
// At the interpreter's end: lines that have yet to be logged.
void LogLastLines();
void BindFacts(nb::module_& module);
void BindFakeCuda(nb::module_& parent);  // of builds over the fakes alone

// Closes a stream, on its thread or when nobody uses it. Without the GIL.
void CloseStream(StreamState* stream);
// Whether a thread of its own is in one of its calls.
bool IsInUse(const StreamState& stream);

}  // namespace sluice::python

#endif  // SLUICE_PYTHON_SRC_SESSION_H_
