// A placement for each side.
#include "workload/collectives.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "sluice/status.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

struct Kind {
  const char* name;
  Placement src;
  Placement dst;
  bool from_root = false;  // all others: from all ranks, to all ranks
  bool to_root = false;
};

// In the order of Collective.
std::array<Kind, 7> KindsOver(int ranks) {
  const Placement whole = Placement::Replicate();
  const Placement part = Placement::Shard(0);
  const Placement sum = Placement::Partial(ReduceOp::kSum);
  // Each rank's part is cut into one piece for each rank.
  const Placement pieces = Placement::StridedShard(0, ranks);
  return {{{"all-gather", part, whole},
           {"reduce-scatter", sum, part},
           {"all-reduce", sum, whole},
           {"all-to-all", part, pieces},
           {"broadcast", whole, whole, true},
           {"scatter", whole, part, true},
           {"gather", part, whole, false, true}}};
}

// What spellings of one name have in common: "allgather" of "all-gather" and "All_Gather".
std::string LettersOf(absl::string_view name) {
  return absl::AsciiStrToLower(absl::StrReplaceAll(name, {{"-", ""}, {"_", ""}}));
}

absl::StatusOr<Layout> Over(int ranks, const Placement& placement) {
  std::vector<int> list(static_cast<size_t>(ranks));
  std::iota(list.begin(), list.end(), 0);
  SLUICE_ASSIGN_OR_RETURN(Mesh mesh, Mesh::Create({ranks}, std::move(list)));
  return Layout{std::move(mesh), {placement}};
}

bool Equal(const Layout& a, const Layout& b) {
  return a.mesh == b.mesh && a.placements == b.placements && a.order == b.order;
}

}  // namespace

std::vector<std::string> CollectiveNames() {
  std::vector<std::string> names;
  for (const Kind& kind : KindsOver(1)) names.emplace_back(kind.name);
  return names;
}

absl::StatusOr<Collective> ParseCollective(absl::string_view name) {
  const std::vector<std::string> names = CollectiveNames();
  const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& each) {
    return LettersOf(each) == LettersOf(name);
  });
  if (found != names.end()) return static_cast<Collective>(found - names.begin());
  return absl::InvalidArgumentError(
      absl::StrCat("there is no \"", name, "\"; there are: ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<CollectiveLayouts> LayoutsOf(Collective collective, int ranks) {
  if (ranks < 1 || ranks > kMaxListedRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a collective is over 1 to ", kMaxListedRanks, " ranks, not ", ranks));
  }
  const Kind kind = KindsOver(ranks)[static_cast<size_t>(collective)];
  SLUICE_ASSIGN_OR_RETURN(Layout from, Over(kind.from_root ? 1 : ranks, kind.src));
  SLUICE_ASSIGN_OR_RETURN(Layout to, Over(kind.to_root ? 1 : ranks, kind.dst));
  return CollectiveLayouts{std::move(from), std::move(to)};
}

std::optional<Collective> CollectiveOf(const Layout& src, const Layout& dst) {
  const auto ranks = static_cast<int>(std::max(src.mesh.ranks().size(), dst.mesh.ranks().size()));
  for (size_t i = 0; i < KindsOver(1).size(); ++i) {
    const auto collective = static_cast<Collective>(i);
    const auto layouts = LayoutsOf(collective, ranks);
    if (layouts.ok() && Equal(layouts->src, src) && Equal(layouts->dst, dst)) return collective;
  }
  return std::nullopt;
}

}  // namespace sluice::bench
