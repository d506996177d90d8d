// Learning what there is to stream, on all ranks.
#ifndef SLUICE_BENCH_STREAM_LOAD_CONTENTS_H_
#define SLUICE_BENCH_STREAM_LOAD_CONTENTS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "reshard/ranks.h"
#include "stream/contents.h"
#include "stream/options.h"

namespace sluice::bench {

// Collective: rank 0 reads the index, or the headers of objects without one, and hands it on, so
// that a server is asked for it once more by the benchmark, not once per rank. The status is this
// rank's, and may differ between ranks.
absl::StatusOr<std::unique_ptr<Contents>> LoadContents(const StreamBenchOptions& options,
                                                       Ranks* ranks);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_LOAD_CONTENTS_H_
