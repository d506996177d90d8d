// The session as calls beside Session's own use it: its peers, and the memory it takes.
#ifndef SLUICE_SRC_SESSION_CONNECT_CALL_DOOR_H_
#define SLUICE_SRC_SESSION_CONNECT_CALL_DOOR_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "session/base/memory_rules.h"
#include "session/peers/peers.h"

namespace sluice {

// Each session is one. Thread: the session's.
class CallDoor {
 public:
  virtual ~CallDoor() = default;

  using Work = absl::FunctionRef<absl::Status(Peers* peers, const MemoryRules& rules)>;
  // Collective: begins as Session::Compile does, then does `work`, and returns what that returns.
  virtual absl::Status MakeCall(absl::string_view call, Work work) = 0;

  // Said right before a Start: its views are those of each other Start before which the same number
  // was said, so that they need not be checked again. Without it they are checked.
  virtual void NameViews(int64_t binding) = 0;

  // FailedPrecondition in a forked child.
  virtual absl::StatusOr<MemoryRules> CurrentMemoryRules() const = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CONNECT_CALL_DOOR_H_
