// The handles of the C API, and who owns them.
#ifndef SLUICE_SRC_C_HANDLES_H_
#define SLUICE_SRC_C_HANDLES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/connect.h"
#include "sluice/fabric.h"
#include "sluice/run.h"
#include "sluice/session.h"
#include "sluice/sluice.h"
#include "sluice/stream.h"
#include "sluice/world.h"

namespace sluice::c {

// The newest runs of a session, by number. Thread: any.
class KnownRuns {
 public:
  static constexpr int64_t kRuns = 4096;

  // Makes room for one more, so that Add needs no memory.
  void Prepare();
  void Add(const Run& run);
  // NotFound: there has been no such run; or it is over, and too long ago.
  absl::StatusOr<Run> Find(int64_t number) const;
  // Also of a run that there has not been. Takes no memory.
  bool IsOver(int64_t number) const;

 private:
  // With the lock held. Null: Find knows why.
  const Run* At(int64_t number) const;

  mutable std::mutex mutex_;
  std::vector<Run> runs_;  // a ring, once it has kRuns
  int64_t last_ = 0;
};

// The options of Session::Create, and what is wrong with them: then Create is called with bad ones,
// for the other ranks to hear of it.
struct OwnOptions {
  explicit OwnOptions(const sluice_session_options* given);
  absl::Status status;
  SessionOptions options;
};

// Makes a handle of a session that this thread has just made with `own`, or says what is wrong.
// `world`: whose life ends after the session's.
absl::Status GiveSession(absl::StatusOr<std::unique_ptr<Session>> made, const OwnOptions& own,
                         std::unique_ptr<World> world, sluice_session** session);

// FailedPrecondition: another thread's. InvalidArgument: null.
absl::Status CheckSession(const sluice_session* session);

// Session::Refuse, so that the other ranks hear of `own`, which is returned.
absl::Status Refuse(sluice_session* session, const char* call, const absl::Status& own);

}  // namespace sluice::c

struct sluice_world {
  std::atomic<bool> in_call{false};
  std::unique_ptr<sluice::World> world;
  std::string store_address;
  std::string missing;
  std::vector<sluice::WorldMember> members;
};

struct sluice_local {
  std::mutex mutex;
  std::vector<std::unique_ptr<sluice::Fabric>> fabrics;  // null once taken
};

struct sluice_memory {
  std::shared_ptr<std::byte> data;
};

struct sluice_transfer {
  sluice_session* session = nullptr;
  sluice::Transfer* transfer = nullptr;
  std::unique_ptr<sluice::Connection> connection;  // null: compiled
};

struct sluice_stream {
  sluice_session* session = nullptr;
  std::unique_ptr<sluice::Stream> stream;
  std::atomic<std::thread::id> owner{};  // none: nobody has called sluice_stream_next
};

struct sluice_lease {
  sluice::Lease lease;
  std::thread::id owner;
  std::vector<sluice::TensorView> views;  // that the caller has asked for, by item; the batch last
};

struct sluice_session {
  std::thread::id owner;
  // Destroyed from the last to the first.
  std::unique_ptr<sluice::World> world;
  std::unique_ptr<sluice::Session> session;
  std::vector<std::unique_ptr<sluice_transfer>> transfers;
  std::mutex streams_mutex;
  std::vector<std::unique_ptr<sluice_stream>> streams;
  int stream_calls = 0;  // in which other threads may be just now
  sluice::c::KnownRuns runs;
  std::string event_message;
};

#endif  // SLUICE_SRC_C_HANDLES_H_
