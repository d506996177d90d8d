// The ranks' first exchange: has every rank understood the same flags and files?
#ifndef SLUICE_BENCH_JOB_AGREEMENT_H_
#define SLUICE_BENCH_JOB_AGREEMENT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "sluice/fabric.h"

namespace sluice::bench {

// What has to be equal on all ranks, by name. The names are the same on all ranks.
using KnobList = std::vector<std::pair<std::string, int64_t>>;

// What one rank brings to the comparison.
struct Understanding {
  absl::Status status;  // of reading flags and files
  KnobList knobs;
};

// Collective over `fabric`. OK if all ranks have understood and have equal knobs. Otherwise an
// error on all ranks that names those that failed or differ. If ranks did not come within
// `timeout`, the others get DeadlineExceeded, which names the missing ones.
absl::Status Agree(const Understanding& mine, absl::Duration timeout, Fabric* fabric);

// Collective over `fabric`. Waits until all ranks have called, or some are gone, but no longer than
// `timeout`.
void AwaitAll(absl::Duration timeout, Fabric* fabric);

// One status for many ranks: OK if all are; otherwise who says what, ranks that say the same
// together.
absl::Status CombineStatuses(absl::Span<const absl::Status> status_by_rank);

// "rank 3", "ranks 0-2,5".
std::string RanksName(absl::Span<const int> ascending);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_AGREEMENT_H_
