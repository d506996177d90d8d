// Layouts by hand, as tests say them.
#ifndef SLUICE_TESTS_ORACLE_MAKE_LAYOUT_H_
#define SLUICE_TESTS_ORACLE_MAKE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "sluice/layout.h"

namespace sluice::oracle {

// first, first + 1, ..
inline std::vector<int> RankRange(int first, int count) {
  std::vector<int> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

// `placements` as ParsePlacements reads them. Ends the test if it is no layout.
inline Layout MakeLayout(std::vector<int64_t> sizes, std::vector<int> ranks,
                         absl::string_view placements) {
  return {Mesh::Create(std::move(sizes), std::move(ranks)).value(),
          ParsePlacements(placements).value()};
}

// Over the ranks 0 .. ranks-1.
inline Layout MakeLayout(int ranks, absl::string_view placements) {
  return MakeLayout({ranks}, RankRange(0, ranks), placements);
}

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_ORACLE_MAKE_LAYOUT_H_
