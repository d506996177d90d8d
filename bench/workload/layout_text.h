// A layout as one text: MESH@RANKS:PLACEMENTS, such as "2,4@0-7:R,S(0)". An order in which mesh
// dimensions are visited may follow: "2,4@0-7:S(0),S(0):1,0".
#ifndef SLUICE_BENCH_WORKLOAD_LAYOUT_TEXT_H_
#define SLUICE_BENCH_WORKLOAD_LAYOUT_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/layout.h"

namespace sluice::bench {

// Reads it. "@RANKS" may be left out: then the mesh is of consecutive ranks from `first_rank`.
// InvalidArgument quotes what is wrong.
absl::StatusOr<Layout> ParseLayoutText(absl::string_view text, int first_rank = 0);

// Whether `text` says which ranks it is of.
bool NamesRanks(absl::string_view text);

// What ParseLayoutText reads as `layout`.
std::string LayoutText(const Layout& layout);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_LAYOUT_TEXT_H_
