// Notices that the process is a child of the one in which something was made.
#ifndef SLUICE_SRC_SESSION_BASE_FORK_GUARD_H_
#define SLUICE_SRC_SESSION_BASE_FORK_GUARD_H_

#include <cstdint>

#include "absl/status/status.h"

namespace sluice {

// How often fork() has led to this process, from the first use on.
int64_t ForkGeneration();

// Costs a load. Thread: any.
class ForkGuard {
 public:
  ForkGuard() : generation_(ForkGeneration()) {}

  // True in a child of the process that made this object, and in children of that.
  bool InChild() const { return ForkGeneration() != generation_; }
  // FailedPrecondition there.
  absl::Status Check() const;

 private:
  const int64_t generation_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_FORK_GUARD_H_
