// The way from functions beside Session to what it keeps private.
#ifndef SLUICE_SRC_SESSION_SESSION_DOOR_H_
#define SLUICE_SRC_SESSION_SESSION_DOOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "session/base/run_id.h"
#include "sluice/checkpoint.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "sluice/testing.h"

namespace sluice {

// `session` is not null. Thread: the session's.
class SessionDoor {
 public:
  static absl::StatusOr<std::unique_ptr<Stream>> Open(Session* session,
                                                      const StreamOptions& options,
                                                      const InjectedDelay& delay) {
    return session->OpenStream(options, delay);
  }
  static absl::StatusOr<CheckpointStats> Load(Session* session, const std::string& uri,
                                              absl::Span<const CheckpointTensor> tensors,
                                              const CheckpointOptions& options) {
    return session->LoadCheckpoint(uri, tensors, options);
  }
  static absl::StatusOr<CheckpointStats> Save(Session* session, const std::string& directory,
                                              absl::Span<const CheckpointTensor> tensors,
                                              const CheckpointOptions& options) {
    return session->SaveCheckpoint(directory, tensors, options);
  }
  // Of a run by its number, which need not have been started: true as well once the session has
  // failed. Any thread.
  static bool IsRunDone(const Session& session, RunId run) { return session.IsRunDone(run); }
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SESSION_DOOR_H_
