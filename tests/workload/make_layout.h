// Layouts of the suites of layouts: a mesh of ranks in order, and placements as text.
#ifndef SLUICE_TESTS_WORKLOAD_MAKE_LAYOUT_H_
#define SLUICE_TESTS_WORKLOAD_MAKE_LAYOUT_H_

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "sluice/layout.h"

namespace sluice::bench {

// Ranks are 0, 1, ... along `mesh`, the last dimension fastest. Ends the test if it is no layout.
inline Layout MakeLayout(std::vector<int64_t> mesh, const char* placements) {
  int64_t count = 1;
  for (const int64_t size : mesh) count *= size;
  std::vector<int> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return {*Mesh::Create(std::move(mesh), std::move(ranks)), *ParsePlacements(placements)};
}

}  // namespace sluice::bench

#endif  // SLUICE_TESTS_WORKLOAD_MAKE_LAYOUT_H_
