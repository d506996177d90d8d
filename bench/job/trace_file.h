// Merges the ranks' traces into one file.
#ifndef SLUICE_BENCH_JOB_TRACE_FILE_H_
#define SLUICE_BENCH_JOB_TRACE_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/ranks.h"
#include "sluice/trace.h"

namespace sluice::bench {

// Collective. Rank 0 writes `path` and returns what it wrote, in words; others return nothing.
// `log`: this rank's. An error is rank 0's alone, unless the ranks could not be brought together.
absl::StatusOr<std::string> WriteTraceFile(const std::string& path, const TraceLog& log,
                                           absl::Duration timeout, Ranks* ranks,
                                           Ranks::Progress progress);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_TRACE_FILE_H_
