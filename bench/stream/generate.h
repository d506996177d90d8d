// The generator of the benchmark: makes items that can be checked, in the time it is told.
#ifndef SLUICE_BENCH_STREAM_GENERATE_H_
#define SLUICE_BENCH_STREAM_GENERATE_H_

#include <cstdint>

#include "sluice/stream.h"
#include "workload/shard_fill.h"

namespace sluice::bench {

// Fills an item and sleeps until `generate_ns` have passed since it began. Any number of threads.
Generator MakeFillGenerator(const ShardFill& fill, int64_t generate_ns);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_GENERATE_H_
