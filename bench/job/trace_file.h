// Merges the ranks' traces into one file.
#ifndef SLUICE_BENCH_JOB_TRACE_FILE_H_
#define SLUICE_BENCH_JOB_TRACE_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/ranks.h"
#include "sluice/trace.h"

namespace sluice::bench {

struct TraceFileFacts {
  int64_t bytes = 0;    // 0: none was written
  int64_t dropped = 0;  // events that found no room
};

// Collective. Rank 0 writes `path` and returns what it wrote, in words; others return nothing.
// `log`: this rank's. `note` goes into the names of all processes, beside their hosts. An error is
// rank 0's alone, unless the ranks could not be brought together.
absl::StatusOr<std::string> WriteTraceFile(const std::string& path, const TraceLog& log,
                                           absl::Duration timeout, Ranks* ranks,
                                           Ranks::Progress progress, const std::string& note = "",
                                           TraceFileFacts* facts = nullptr);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_TRACE_FILE_H_
