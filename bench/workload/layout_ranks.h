// The ranks that a layout names, with a mesh or with boxes.
#ifndef SLUICE_BENCH_WORKLOAD_LAYOUT_RANKS_H_
#define SLUICE_BENCH_WORKLOAD_LAYOUT_RANKS_H_

#include <vector>

#include "sluice/layout.h"

namespace sluice::bench {

// In the order of the mesh, or ascending.
inline std::vector<int> RanksOf(const Layout& layout) {
  std::vector<int> ranks(layout.mesh.ranks().begin(), layout.mesh.ranks().end());
  for (const RankBoxes& of : layout.boxes.ranks()) ranks.push_back(of.rank);
  return ranks;
}

inline bool HasRank(const Layout& layout, int rank) {
  return layout.mesh.PositionOf(rank).has_value() || !layout.boxes.Of(rank).empty();
}

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_LAYOUT_RANKS_H_
