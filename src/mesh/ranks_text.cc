// One run of neighbours after the other.
#include "mesh/ranks_text.h"

#include "absl/strings/str_cat.h"

namespace sluice {

std::string RankRunsText(absl::Span<const int> ranks, size_t most_runs) {
  std::string text;
  size_t runs = 0;
  for (size_t i = 0; i < ranks.size(); ++runs) {
    if (runs == most_runs) {
      absl::StrAppend(&text, " and ", ranks.size() - i, " more");
      break;
    }
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    absl::StrAppend(&text, i == 0 ? "" : ", ", ranks[i]);
    if (last > i) absl::StrAppend(&text, last == i + 1 ? ", " : "-", ranks[last]);
    i = last + 1;
  }
  return text;
}

std::string NamedRanks(absl::Span<const int> ranks, size_t most_runs) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", RankRunsText(ranks, most_runs));
}

}  // namespace sluice
