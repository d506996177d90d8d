// Tells a forked child why its calls fail.
#include "session/base/fork_guard.h"

namespace sluice {

absl::Status ForkGuard::Check() const {
  if (!InChild()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the session belongs to the process that made it, and this is a child that was forked: it "
      "has none of its threads, and shares its connections");
}

}  // namespace sluice
