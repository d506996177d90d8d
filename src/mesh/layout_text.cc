// Taking the text apart, and putting it together.
#include "mesh/layout_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "sluice/layout.h"
#include "tensor/checked.h"
#include "tensor/error_text.h"

namespace sluice {
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

absl::Status AppendRanks(absl::string_view part, std::vector<int>* ranks) {
  const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
  int first = 0;
  int last = 0;
  const bool ok = ends.size() <= 2 && absl::SimpleAtoi(ends.front(), &first) &&
                  absl::SimpleAtoi(ends.back(), &last) && first >= 0 && first <= last;
  if (!ok) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", part, "\" is neither a rank nor an ascending range of ranks"));
  }
  const int64_t count = int64_t{last} - first + 1;
  if (count + static_cast<int64_t>(ranks->size()) > kMaxListedRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", part, "\" makes more than ", kMaxListedRanks, " ranks"));
  }
  for (int64_t i = 0; i < count; ++i) ranks->push_back(first + static_cast<int>(i));
  return absl::OkStatus();
}

// A mesh of the ranks from `first` on. `text` says `sizes`.
absl::StatusOr<Mesh> ConsecutiveMesh(absl::string_view text, std::vector<int64_t> sizes,
                                     int first) {
  const bool is_empty =
      std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 1; });
  if (is_empty || !CheckedProduct(sizes, kMaxListedRanks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is no mesh of 1 to ", kMaxListedRanks, " ranks"));
  }
  return Mesh::Range(std::move(sizes), first);
}

absl::StatusOr<Mesh> MeshOf(const Parts& parts, int first_rank) {
  SLUICE_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, ParseIntegers(parts.mesh));
  if (parts.ranks.data() == nullptr) {
    return ConsecutiveMesh(parts.mesh, std::move(sizes), first_rank);
  }
  SLUICE_ASSIGN_OR_RETURN(std::vector<int> ranks, ParseRanks(parts.ranks));
  return Mesh::Create(std::move(sizes), std::move(ranks));
}

absl::StatusOr<std::vector<int>> ParseOrder(absl::string_view text, size_t dims) {
  SLUICE_ASSIGN_OR_RETURN(const std::vector<int64_t> listed, ParseIntegers(text));
  std::vector<int> order;
  for (const int64_t dim : listed) {
    if (dim < 0 || dim >= static_cast<int64_t>(dims)) {
      return absl::InvalidArgumentError(absl::StrCat("there is no mesh dimension ", dim));
    }
    order.push_back(static_cast<int>(dim));
  }
  return order;
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ParseIntegers(absl::string_view text) {
  std::vector<int64_t> values;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(part), &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", text, "\" is not a comma-separated list of 64-bit integers"));
    }
    values.push_back(value);
  }
  return values;
}

absl::StatusOr<std::vector<int>> ParseRanks(absl::string_view text) {
  std::vector<int> ranks;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    absl::Status status = AppendRanks(absl::StripAsciiWhitespace(part), &ranks);
    if (!status.ok()) return status;
  }
  return ranks;
}

bool NamesRanks(absl::string_view text) {
  return text.substr(0, text.find(':')).find('@') != absl::string_view::npos;
}

absl::StatusOr<Layout> ParseLayout(absl::string_view text, int first_rank) {
  SLUICE_ASSIGN_OR_RETURN(const Parts parts, Split(text));
  Layout layout;
  SLUICE_ASSIGN_OR_RETURN(layout.mesh, Annotate(MeshOf(parts, first_rank), "\"", text, "\""));
  SLUICE_ASSIGN_OR_RETURN(layout.placements, ParsePlacements(parts.placements));
  if (parts.order.data() == nullptr) return layout;
  SLUICE_ASSIGN_OR_RETURN(layout.order, Annotate(ParseOrder(parts.order, layout.placements.size()),
                                                 "\"", text, "\": order"));
  return layout;
}

absl::StatusOr<Layout> Layout::Parse(absl::string_view text) { return ParseLayout(text, 0); }

std::string LayoutName(const Layout& layout) {
  const auto name = [](std::string* out, const Placement& placement) {
    absl::StrAppend(out, PlacementName(placement));
  };
  const auto& sizes = layout.mesh.sizes();
  const auto& ranks = layout.mesh.ranks();
  return absl::StrCat(absl::StrJoin(sizes, ","), "@", RanksText(ranks, kCompactRuns), ":",
                      absl::StrJoin(layout.placements, ",", name), layout.order.empty() ? "" : ":",
                      absl::StrJoin(layout.order, ","));
}

}  // namespace sluice
