// Taking the text apart, and putting it together.
#include "workload/layout_text.h"

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensor/error_text.h"
#include "workload/json_input.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

struct Parts {
  absl::string_view mesh;
  absl::string_view ranks;  // no data where the text has none
  absl::string_view placements;
  absl::string_view order;  // no data where the text has none
};

absl::StatusOr<Parts> Split(absl::string_view text) {
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text, "\" is not MESH@RANKS:PLACEMENTS, such as 2,4@0-7:R,S(0) or 2,4:R,S(0)"));
  }
  Parts parts = {text.substr(0, colon), {}, text.substr(colon + 1), {}};
  const size_t second = parts.placements.find(':');
  if (second != absl::string_view::npos) {
    parts.order = parts.placements.substr(second + 1);
    parts.placements = parts.placements.substr(0, second);
  }
  const size_t at = parts.mesh.find('@');
  if (at == absl::string_view::npos) return parts;
  parts.ranks = parts.mesh.substr(at + 1);
  parts.mesh = parts.mesh.substr(0, at);
  return parts;
}

// As many ranks from `first` as a mesh of `sizes` has.
absl::StatusOr<std::vector<int>> Consecutive(absl::string_view mesh,
                                             const std::vector<int64_t>& sizes, int first) {
  int64_t count = 1;
  for (const int64_t size : sizes) {
    if (size < 1 || size > kMaxListedRanks / count) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", mesh, "\" is no mesh of 1 to ", kMaxListedRanks, " ranks"));
    }
    count *= size;
  }
  std::vector<int> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

absl::StatusOr<std::vector<int>> ParseOrder(absl::string_view text, size_t dims) {
  const absl::StatusOr<std::vector<int64_t>> listed = ParseIntegers(text);
  if (!listed.ok()) return Prefixed("order", listed.status());
  std::vector<int> order;
  for (const int64_t dim : *listed) {
    if (dim < 0 || dim >= static_cast<int64_t>(dims)) {
      return absl::InvalidArgumentError(absl::StrCat("order: there is no mesh dimension ", dim));
    }
    order.push_back(static_cast<int>(dim));
  }
  return order;
}

}  // namespace

bool NamesRanks(absl::string_view text) {
  return text.substr(0, text.find(':')).find('@') != absl::string_view::npos;
}

absl::StatusOr<Layout> ParseLayoutText(absl::string_view text, int first_rank) {
  const absl::StatusOr<Parts> parts = Split(text);
  if (!parts.ok()) return parts.status();
  absl::StatusOr<std::vector<int64_t>> sizes = ParseIntegers(parts->mesh);
  if (!sizes.ok()) return sizes.status();
  absl::StatusOr<std::vector<int>> ranks =
      NamesRanks(text) ? ParseRanks(parts->ranks) : Consecutive(parts->mesh, *sizes, first_rank);
  if (!ranks.ok()) return ranks.status();
  absl::StatusOr<Mesh> mesh = Mesh::Create(*std::move(sizes), *std::move(ranks));
  if (!mesh.ok()) return Prefixed(absl::StrCat("\"", text, "\""), mesh.status());
  absl::StatusOr<std::vector<Placement>> placements = ParsePlacements(parts->placements);
  if (!placements.ok()) return placements.status();
  Layout layout = {*std::move(mesh), *std::move(placements), {}};
  if (parts->order.data() == nullptr) return layout;
  absl::StatusOr<std::vector<int>> order = ParseOrder(parts->order, layout.placements.size());
  if (!order.ok()) return Prefixed(absl::StrCat("\"", text, "\""), order.status());
  layout.order = *std::move(order);
  return layout;
}

std::string LayoutText(const Layout& layout) {
  const auto name = [](std::string* out, const Placement& placement) {
    absl::StrAppend(out, PlacementName(placement));
  };
  const auto& sizes = layout.mesh.sizes();
  const auto& ranks = layout.mesh.ranks();
  return absl::StrCat(absl::StrJoin(sizes, ","), "@", RanksText(ranks, kCompactRuns), ":",
                      absl::StrJoin(layout.placements, ",", name), layout.order.empty() ? "" : ":",
                      absl::StrJoin(layout.order, ","));
}

}  // namespace sluice::bench
