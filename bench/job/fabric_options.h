// The fabric that flags ask for.
#ifndef SLUICE_BENCH_JOB_FABRIC_OPTIONS_H_
#define SLUICE_BENCH_JOB_FABRIC_OPTIONS_H_

#include "absl/time/time.h"
#include "sluice/mpi.h"

namespace sluice::bench {

// `ranks_per_node` is the flag's: 0 is automatic.
inline MpiFabricOptions FabricOptionsOf(int ranks_per_node, absl::Duration timeout) {
  MpiFabricOptions options;
  options.timeout = timeout;
  if (ranks_per_node != 0) options.ranks_per_node = ranks_per_node;
  return options;
}

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_FABRIC_OPTIONS_H_
