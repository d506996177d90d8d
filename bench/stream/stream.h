// `sluice-bench stream`, once MPI is initialised.
#ifndef SLUICE_BENCH_STREAM_STREAM_H_
#define SLUICE_BENCH_STREAM_STREAM_H_

#include "absl/status/status.h"
#include "stream/options.h"

namespace sluice::bench {

// Collective over all ranks of the job. `flags`: what this rank's command line came to; an error
// ends the run on all ranks. Finalises MPI. Returns what main returns: success if everything was
// delivered, and was right.
int RunStream(const StreamBenchOptions& options, const absl::Status& flags);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_STREAM_H_
