// All but the nodes is the fabric's own.
#include "job/planned_nodes.h"

#include <utility>
#include <vector>

#include "transport/passing_fabric.h"

namespace sluice::bench {

std::unique_ptr<Fabric> PlanNodes(std::unique_ptr<Fabric> fabric, int ranks_per_node) {
  if (ranks_per_node <= 0) return fabric;
  std::vector<int> nodes;
  for (int rank = 0; rank < fabric->size(); ++rank) nodes.push_back(rank / ranks_per_node);
  return std::make_unique<PassingFabric>(std::move(fabric), std::move(nodes));
}

}  // namespace sluice::bench
