// `sluice-bench sync`: one side of a weight sync between jobs that were started apart.
#ifndef SLUICE_BENCH_SYNC_SYNC_H_
#define SLUICE_BENCH_SYNC_SYNC_H_

#include "absl/status/status.h"
#include "sync/options.h"

namespace sluice::bench {

// Takes part in the sync as the flags say. `flags` says whether they could be read. Writes the
// results file of this process, and returns its exit code.
int RunSync(SyncOptions* options, const absl::Status& flags);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_SYNC_SYNC_H_
