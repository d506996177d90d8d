// The subcommand `sluice-bench stream`.
#ifndef SLUICE_BENCH_STREAM_STREAM_H_
#define SLUICE_BENCH_STREAM_STREAM_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "job/job.h"
#include "stream/options.h"

namespace sluice::bench {

// Collective over all ranks of the job. `flags`: what this rank's command line came to; an error
// ends the run on all ranks. Leaves the job. Returns what main returns: success if everything was
// delivered, and was right.
int RunStream(absl::StatusOr<std::unique_ptr<Job>> job, const StreamBenchOptions& options,
              const absl::Status& flags);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_STREAM_H_
