// Lists of ranks and boxes put together.
#include "plan/connect/merged_layouts.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensor/check.h"
#include "tensor/error_text.h"

namespace sluice {

absl::StatusOr<Layout> MergedLayouts::OfBoxes(absl::Span<const Holders> holders) {
  std::vector<std::pair<int, int>> key;
  key.reserve(holders.size());
  int64_t count = 0;
  for (const Holders& each : holders) {
    key.emplace_back(each.half, each.number);
    count += static_cast<int64_t>(each.ranks.size() * each.boxes->ranks()[0].boxes.size());
  }
  const auto [made, is_new] = boxes_.try_emplace(std::move(key));
  if (!is_new) return made->second;
  if (count > BoxList::kBoxesMax) {
    return absl::ResourceExhaustedError(absl::StrCat("its ranks have ", count, " boxes; at most ",
                                                     BoxList::kBoxesMax, " are possible"));
  }
  boxes_made_ += count;
  if (boxes_made_ > boxes_max_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("with it the tensors have more than ", boxes_max_, " boxes"));
  }
  std::vector<RankBoxes> lists;
  for (const Holders& each : holders) {
    for (const int rank : each.ranks) lists.push_back({rank, each.boxes->ranks()[0].boxes});
  }
  SLUICE_ASSIGN_OR_RETURN(made->second.boxes, BoxList::Create(std::move(lists)));
  return made->second;
}

bool MergedLayouts::AreCopies(const Layout& a, const Layout& b) {
  if (!a.boxes.empty() || !b.boxes.empty()) return false;
  if (a.mesh.sizes() != b.mesh.sizes() || a.placements != b.placements) return false;
  const bool same_order =
      IsLeftToRight(a) ? IsLeftToRight(b) : !IsLeftToRight(b) && a.order == b.order;
  const absl::Span<const int> ranks = a.mesh.ranks();
  return same_order && std::none_of(ranks.begin(), ranks.end(),
                                    [&b](int rank) { return b.mesh.PositionOf(rank).has_value(); });
}

Layout MergedLayouts::OfCopies(absl::Span<const Layout* const> layouts,
                               const std::vector<int>& numbers) {
  const auto [made, is_new] = copies_.try_emplace(numbers);
  if (!is_new) return made->second;
  const Layout& first = *layouts.front();
  std::vector<int64_t> sizes = {static_cast<int64_t>(layouts.size())};
  sizes.insert(sizes.end(), first.mesh.sizes().begin(), first.mesh.sizes().end());
  std::vector<int> ranks;
  for (const Layout* layout : layouts) {
    ranks.insert(ranks.end(), layout->mesh.ranks().begin(), layout->mesh.ranks().end());
  }
  absl::StatusOr<Mesh> mesh = Mesh::Create(std::move(sizes), std::move(ranks));
  SLUICE_CHECK(mesh.ok(), "meshes of copies share no rank");
  Layout& merged = made->second;
  merged.mesh = *std::move(mesh);
  merged.placements = {Placement::Replicate()};
  merged.placements.insert(merged.placements.end(), first.placements.begin(),
                           first.placements.end());
  if (IsLeftToRight(first)) return merged;
  merged.order = {0};
  for (const int dim : first.order) merged.order.push_back(dim + 1);
  return merged;
}

}  // namespace sluice
