// A run whose targets get memory one window at a time, and give it back when they are done.
#ifndef SLUICE_BENCH_RESHARD_WINDOWED_H_
#define SLUICE_BENCH_RESHARD_WINDOWED_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "memory/memory_watch.h"
#include "reshard/case_memory.h"
#include "sluice/session.h"
#include "workload/local_tensor.h"

namespace sluice::bench {

// What became of the targets while they were there.
struct WindowedOutcome {
  int64_t wrong = 0;
  int64_t peak_target_bytes = 0;  // held at once
  std::vector<std::pair<int64_t, Fingerprint>> fingerprints;
};

struct WindowedChecks {
  bool count_wrong = true;
  bool fingerprint = false;
};

// Gives each `per_window` tensors of `spec` a window of their own, in order.
void AssignWindows(int per_window, TransferSpec* spec);

// Starts a run and carries it to its end. `memory` was created with late targets. Counts into
// `outcome`; the checks are part of the time that it takes. `watch` may be null, and does not count
// the targets.
absl::Status RunWindowed(Session* session, Transfer* transfer, const WindowedChecks& checks,
                         CaseMemory* memory, MemoryWatch* watch, WindowedOutcome* outcome);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_WINDOWED_H_
