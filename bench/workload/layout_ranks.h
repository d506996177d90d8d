// The ranks that layouts name, with a mesh or with boxes.
#ifndef SLUICE_BENCH_WORKLOAD_LAYOUT_RANKS_H_
#define SLUICE_BENCH_WORKLOAD_LAYOUT_RANKS_H_

#include <algorithm>
#include <vector>

#include "sluice/layout.h"
#include "sluice/transfer.h"

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

// How many ranks a job has that carries all of it out: the highest that is named, and those below.
inline int JobRanks(const TransferSpec& spec) {
  int most = -1;
  for (const TensorTransfer& tensor : spec.tensors) {
    most = std::max({most, MaxRank(tensor.src), MaxRank(tensor.dst)});
  }
  return most + 1;
}

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_LAYOUT_RANKS_H_
