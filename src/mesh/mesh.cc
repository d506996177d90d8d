// Meshes: validated, shared, immutable.
#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sluice/layout.h"
#include "tensor/checked.h"
#include "tensor/error_text.h"

namespace sluice {

Mesh::Mesh() : rep_(std::make_shared<const Rep>()) {}

absl::StatusOr<Mesh> Mesh::Create(std::vector<int64_t> sizes, std::vector<int> ranks) {
  const std::string shape = absl::StrCat("mesh [", absl::StrJoin(sizes, ","), "]");
  if (sizes.empty()) return absl::InvalidArgumentError("mesh has no dimensions");
  for (int64_t size : sizes) {
    if (size < 1)
      return absl::InvalidArgumentError(absl::StrCat(shape, ": sizes must be 1 or more"));
  }
  const std::optional<int64_t> count = CheckedProduct(sizes, std::numeric_limits<int>::max());
  if (!count) return absl::InvalidArgumentError(absl::StrCat(shape, ": too many ranks"));
  if (*count != static_cast<int64_t>(ranks.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(shape, " needs ", *count, " ranks, but ", ranks.size(), " are listed"));
  }
  auto rep = std::make_shared<Rep>();
  rep->position_by_rank.reserve(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0) {
      return MakeError(absl::StatusCode::kInvalidArgument, shape, ": ", RankInWords(ranks[i]),
                       " is negative");
    }
    rep->position_by_rank.emplace_back(ranks[i], static_cast<int64_t>(i));
  }
  std::sort(rep->position_by_rank.begin(), rep->position_by_rank.end());
  for (size_t i = 1; i < rep->position_by_rank.size(); ++i) {
    if (rep->position_by_rank[i].first == rep->position_by_rank[i - 1].first) {
      return MakeError(absl::StatusCode::kInvalidArgument, shape, ": ",
                       RankInWords(rep->position_by_rank[i].first), " is listed more than once");
    }
  }
  rep->sizes = std::move(sizes);
  rep->ranks = std::move(ranks);
  return Mesh(std::move(rep));
}

absl::StatusOr<Mesh> Mesh::Range(std::vector<int64_t> sizes, int first_rank) {
  for (const int64_t size : sizes) {
    if (size < 1) return Create(std::move(sizes), {});  // which says so
  }
  const std::optional<int64_t> count = CheckedProduct(sizes, kRangeRanksMax);
  if (!count || *count > std::numeric_limits<int>::max() - int64_t{first_rank}) {
    return absl::InvalidArgumentError(
        absl::StrCat("mesh [", absl::StrJoin(sizes, ","), "] from ", RankInWords(first_rank).text(),
                     " on has more than ", kRangeRanksMax, " ranks, or ranks that no int holds"));
  }
  std::vector<int> ranks(static_cast<size_t>(*count));
  std::iota(ranks.begin(), ranks.end(), first_rank);
  return Create(std::move(sizes), std::move(ranks));
}

std::optional<int64_t> Mesh::PositionOf(int rank) const {
  const auto& table = rep_->position_by_rank;
  const auto it = std::lower_bound(table.begin(), table.end(), std::make_pair(rank, int64_t{0}));
  if (it == table.end() || it->first != rank) return std::nullopt;
  return it->second;
}

int Mesh::max_rank() const {
  return rep_->position_by_rank.empty() ? -1 : rep_->position_by_rank.back().first;
}

bool operator==(const Mesh& a, const Mesh& b) {
  return a.rep_ == b.rep_ || (a.rep_->sizes == b.rep_->sizes && a.rep_->ranks == b.rep_->ranks);
}

}  // namespace sluice
