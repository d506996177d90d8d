// Ranks in messages, with neighbours joined.
#ifndef SLUICE_SRC_MESH_RANKS_TEXT_H_
#define SLUICE_SRC_MESH_RANKS_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace sluice {

// "0-2, 5" of ascending ranks. After `most_runs` runs of neighbours: "0-2, 5 and 7 more".
std::string RankRunsText(absl::Span<const int> ranks, size_t most_runs = SIZE_MAX);

// "rank 3", "ranks 0-2, 5".
std::string NamedRanks(absl::Span<const int> ranks, size_t most_runs = SIZE_MAX);

}  // namespace sluice

#endif  // SLUICE_SRC_MESH_RANKS_TEXT_H_
