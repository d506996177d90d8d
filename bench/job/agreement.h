// The ranks' first exchange: has every rank understood the same flags and files?
#ifndef SLUICE_BENCH_RESHARD_AGREEMENT_H_
#define SLUICE_BENCH_RESHARD_AGREEMENT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "sluice/fabric.h"
#include "workload/workload.h"

namespace sluice::bench {

// What one rank brings to the comparison.
struct Understanding {
  absl::Status status;  // of reading flags and files
  std::vector<std::pair<std::string, int64_t>> knobs;
};

// A value that differs if the cases differ in number, names, or in which of them are readable.
// What is in them is compared by Session::Compile.
uint64_t HashCases(const Workload& workload);

// Collective over `fabric`. OK if all ranks have understood and have equal knobs; otherwise an
// error on all ranks that names those that failed or differ, or that did not come within `timeout`
// (DeadlineExceeded, on the ranks that came).
absl::Status Agree(const Understanding& mine, absl::Duration timeout, Fabric* fabric);

// One status for many ranks: OK if all are; otherwise who says what, ranks that say the same
// together.
absl::Status CombineStatuses(absl::Span<const absl::Status> status_by_rank);

// "rank 3", "ranks 0-2,5".
std::string RanksName(absl::Span<const int> ascending);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_AGREEMENT_H_
