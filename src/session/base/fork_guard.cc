// A count that each fork's child raises.
#include "session/base/fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace sluice {
namespace {

std::atomic<int64_t> generation = 0;

void CountFork() { generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

int64_t ForkGeneration() {
  static const int registered = pthread_atfork(nullptr, nullptr, &CountFork);
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

absl::Status ForkGuard::Check() const {
  if (!InChild()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the session belongs to the process that made it, and this is a child that was forked: it "
      "has "
      "none of its threads, and shares its connections");
}

}  // namespace sluice
