// Learning what there is to stream, on all ranks.
#ifndef SLUICE_BENCH_STREAM_LOAD_CONTENTS_H_
#define SLUICE_BENCH_STREAM_LOAD_CONTENTS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "job/ranks.h"
#include "stream/contents.h"
#include "stream/options.h"

namespace sluice::bench {

// Collective. Rank 0 reads the index, or the headers of objects without one, and hands it on. So
// the benchmark asks a server for it once more, not once per rank. The status is this rank's, and
// may differ between ranks.
absl::StatusOr<std::unique_ptr<Contents>> LoadContents(const StreamBenchOptions& options,
                                                       Ranks* ranks);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_LOAD_CONTENTS_H_
