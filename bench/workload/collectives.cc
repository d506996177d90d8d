// A placement for each side.
#include "workload/collectives.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

// In the order of Collective.
constexpr std::array<const char*, 7> kNames = {
    "all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast", "scatter", "gather"};

absl::StatusOr<Layout> Over(int ranks, const Placement& placement) {
  std::vector<int> list(static_cast<size_t>(ranks));
  std::iota(list.begin(), list.end(), 0);
  absl::StatusOr<Mesh> mesh = Mesh::Create({ranks}, std::move(list));
  if (!mesh.ok()) return mesh.status();
  return Layout{*std::move(mesh), {placement}};
}

bool Equal(const Layout& a, const Layout& b) {
  return a.mesh == b.mesh && a.placements == b.placements && a.order == b.order;
}

}  // namespace

std::vector<std::string> CollectiveNames() { return {kNames.begin(), kNames.end()}; }

absl::StatusOr<Collective> ParseCollective(absl::string_view name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found != kNames.end()) return static_cast<Collective>(found - kNames.begin());
  return absl::InvalidArgumentError(
      absl::StrCat("there is no \"", name, "\"; there are: ", absl::StrJoin(kNames, ", ")));
}

absl::StatusOr<CollectiveLayouts> LayoutsOf(Collective collective, int ranks) {
  if (ranks < 1 || ranks > kMaxListedRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a collective is over 1 to ", kMaxListedRanks, " ranks, not ", ranks));
  }
  const Placement whole = Placement::Replicate();
  const Placement part = Placement::Shard(0);
  Placement src = part;
  Placement dst = whole;
  int src_ranks = ranks;
  int dst_ranks = ranks;
  switch (collective) {
    case Collective::kAllGather:
      break;
    case Collective::kReduceScatter:
      src = Placement::Partial(ReduceOp::kSum);
      dst = part;
      break;
    case Collective::kAllReduce:
      src = Placement::Partial(ReduceOp::kSum);
      break;
    case Collective::kAllToAll:
      // Each rank's part is cut into one piece for each rank.
      dst = Placement::StridedShard(0, ranks);
      break;
    case Collective::kBroadcast:
      src = whole;
      src_ranks = 1;
      break;
    case Collective::kScatter:
      src = whole;
      dst = part;
      src_ranks = 1;
      break;
    case Collective::kGather:
      dst_ranks = 1;
      break;
  }
  absl::StatusOr<Layout> from = Over(src_ranks, src);
  if (!from.ok()) return from.status();
  absl::StatusOr<Layout> to = Over(dst_ranks, dst);
  if (!to.ok()) return to.status();
  return CollectiveLayouts{*std::move(from), *std::move(to)};
}

std::optional<Collective> CollectiveOf(const Layout& src, const Layout& dst) {
  const auto ranks = static_cast<int>(std::max(src.mesh.ranks().size(), dst.mesh.ranks().size()));
  for (size_t i = 0; i < kNames.size(); ++i) {
    const auto collective = static_cast<Collective>(i);
    const auto layouts = LayoutsOf(collective, ranks);
    if (layouts.ok() && Equal(layouts->src, src) && Equal(layouts->dst, dst)) return collective;
  }
  return std::nullopt;
}

}  // namespace sluice::bench
