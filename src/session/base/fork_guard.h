// Notices that the process is a child of the one in which something was made.
#ifndef SLUICE_SRC_SESSION_BASE_FORK_GUARD_H_
#define SLUICE_SRC_SESSION_BASE_FORK_GUARD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "net/fd.h"

namespace sluice {

// Costs a load. Thread: any.
class ForkGuard {
 public:
  ForkGuard() : forks_(ForkCount()) {}

  // True in a child of the process that made this object, and in children of that.
  bool InChild() const { return ForkCount() != forks_; }
  // FailedPrecondition there.
  absl::Status Check() const;

 private:
  const uint32_t forks_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_FORK_GUARD_H_
