// A fabric whose ranks are said to be on other nodes than they are: to plan as if for a larger
// machine.
#ifndef SLUICE_BENCH_JOB_PLANNED_NODES_H_
#define SLUICE_BENCH_JOB_PLANNED_NODES_H_

#include <memory>

#include "sluice/fabric.h"

namespace sluice::bench {

// Ranks k*N .. k*N+N-1 of `fabric` form node k; `fabric` as it is if `ranks_per_node` is 0.
std::unique_ptr<Fabric> PlanNodes(std::unique_ptr<Fabric> fabric, int ranks_per_node);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_PLANNED_NODES_H_
