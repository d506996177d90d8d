// What overlap of a generator with its consumer has gained, and could gain.
#ifndef SLUICE_BENCH_STREAM_OVERLAP_H_
#define SLUICE_BENCH_STREAM_OVERLAP_H_

#include <string>

#include "stream/options.h"
#include "stream/outcome.h"

namespace sluice::bench {

// Over making and consuming one item after the other on each rank, of `world`, by the times that
// --generate-ms and --consume-us say. 0 where these are none.
double SpeedUp(const StreamBenchOptions& options, int world, const Result& result);
// The most that the order and the threads allow.
double SpeedUpIdeal(const StreamBenchOptions& options, int world);

// Lines of a table's end: a generator's speed-up, staleness and items, of each mode.
std::string OverlapLines(const StreamBenchOptions& options, int world,
                         const std::vector<Result>& results);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_OVERLAP_H_
