// A run whose targets get memory one window at a time, and give it back when they are done.
#ifndef SLUICE_BENCH_RESHARD_WINDOWED_H_
#define SLUICE_BENCH_RESHARD_WINDOWED_H_

#include "absl/status/status.h"
#include "memory/memory_watch.h"
#include "reshard/case_memory.h"
#include "reshard/result.h"
#include "sluice/session.h"

namespace sluice::bench {

struct WindowedChecks {
  bool count_wrong = true;
  bool fingerprint = false;
};

// Gives each `per_window` tensors of `spec` a window of their own, in order.
void AssignWindows(int per_window, TransferSpec* spec);

// Starts a run and carries it to its end. `memory` was created with late targets. Puts into
// `record` wrong elements, fingerprints, and how much target memory was held at once. The checks
// are part of the time that the run takes. `watch` does not count the targets.
absl::Status RunWindowed(Session* session, Transfer* transfer, const WindowedChecks& checks,
                         CaseMemory* memory, MemoryWatch* watch, RankRecord* record);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_WINDOWED_H_
