// Texts of lists of numbers, of ranks, and of layouts: for Layout::Parse and command lines.
#ifndef SLUICE_SRC_MESH_LAYOUT_TEXT_H_
#define SLUICE_SRC_MESH_LAYOUT_TEXT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/layout.h"

namespace sluice {

// Reads "4096,4096"; blanks are ignored. InvalidArgument quotes the text.
absl::StatusOr<std::vector<int64_t>> ParseIntegers(absl::string_view text);

// Reads "0-3,6": single ranks and ascending ranges, in the order given. InvalidArgument quotes the
// part that is neither, or says that there are more than kMaxListedRanks.
inline constexpr int64_t kMaxListedRanks = 1 << 17;
absl::StatusOr<std::vector<int>> ParseRanks(absl::string_view text);

// As Layout::Parse. A mesh without "@RANKS" is of consecutive ranks from `first_rank`.
absl::StatusOr<Layout> ParseLayout(absl::string_view text, int first_rank);

// Whether `text` says which ranks it is of.
bool NamesRanks(absl::string_view text);

}  // namespace sluice

#endif  // SLUICE_SRC_MESH_LAYOUT_TEXT_H_
