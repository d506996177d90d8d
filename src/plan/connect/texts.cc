// Short texts about long lists.
#include "plan/connect/texts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sluice {

std::string ShapeInWords(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

std::string LayoutInWords(const Layout& layout) {
  if (!layout.boxes.empty()) return "boxes";
  constexpr size_t kDimsShown = 8;
  const size_t dims = std::min(layout.placements.size(), kDimsShown);
  const std::string placements =
      absl::StrJoin(absl::MakeConstSpan(layout.placements).first(dims), ",",
                    [](std::string* out, const Placement& placement) {
                      absl::StrAppend(out, PlacementName(placement));
                    });
  std::vector<int> ranks(layout.mesh.ranks().begin(), layout.mesh.ranks().end());
  const bool ascends = std::is_sorted(ranks.begin(), ranks.end());
  std::sort(ranks.begin(), ranks.end());
  const absl::Span<const int64_t> sizes = layout.mesh.sizes();
  const std::string order =
      IsLeftToRight(layout)
          ? ""
          : absl::StrCat(" in order ",
                         absl::StrJoin(absl::MakeConstSpan(layout.order)
                                           .first(std::min(layout.order.size(), kDimsShown)),
                                       ","));
  return absl::StrCat(placements, dims < layout.placements.size() ? ",..." : "", order, " on mesh ",
                      ShapeInWords(sizes.first(std::min(sizes.size(), kDimsShown))), " of ",
                      NamedRanks(ranks, kFewRuns).text(), ascends ? "" : " in another order");
}

void FaultList::Add(ErrorText fault) {
  if (wants_words()) {
    faults_.push_back(std::move(fault));
  } else {
    Count();
  }
}

ErrorText FaultList::Text(absl::string_view between) const {
  ErrorText text;
  for (const ErrorText& fault : faults_) text.Add(text.empty() ? "" : between, fault);
  if (others_ > 0) text.Add(between, "and ", others_, " more");
  return text;
}

}  // namespace sluice
