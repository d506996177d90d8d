// `sluice-bench shards`: one process, no MPI.
#ifndef SLUICE_TOOLS_SHARDS_SHARDS_H_
#define SLUICE_TOOLS_SHARDS_SHARDS_H_

#include "shards/options.h"

namespace sluice::bench {

// Writes the shards and says on standard output what they are, or on standard error what went
// wrong. Returns what main returns.
int RunShards(const ShardsOptions& options);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_SHARDS_SHARDS_H_
