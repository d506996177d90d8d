// Dividing what has to be reduced between owners.
//
// As in serve.cc, needs lie one after another on a line, and each owner takes a stretch of it. The
// stretches are equal, unless some owners already reduce more than others. Then the stretches fill
// all owners to one level.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "plan/fanout.h"
#include "plan/gathering.h"
#include "plan/serve.h"
#include "plan/serve_line.h"

namespace sluice {
namespace {

// The stretches of contributors at which a part's sums can end with the fewest bytes crossing: of
// all, and on each node.
class Endings {
 public:
  Endings(const Reducers& reducers, absl::Span<const int> node_of_rank)
      : reducers_(reducers), node_of_rank_(node_of_rank) {
    if (!reducers.may_gather) return;
    for (size_t r = 0; r < reducers.replicas(); ++r) {
      const absl::Span<const int> row = reducers.ReplicaAt(r);
      for (const GatherEnd& end : GatherEnds(row, node_of_rank)) {
        const Ending ending = {row, end};
        anywhere_.Add(ending);
        on_node_[end.node].Add(ending);
      }
    }
  }

  struct Owners {
    std::vector<int> ranks;
    int32_t steps = 1;  // the most, of GatherByNode
  };
  // The ranks that can own what the ranks of `nodes` need, so that the least crosses.
  Owners OwnersFor(const RanksByNode& nodes) const {
    const auto results = static_cast<int64_t>(nodes.nodes()) * reducers_.result_bytes;
    // An end on one of the nodes saves a result.
    int64_t least = std::numeric_limits<int64_t>::max();
    std::vector<const Ends*> cheapest;
    for (size_t n = 0; n < nodes.nodes(); ++n) {
      const auto found = on_node_.find(NodeOf(nodes.of(n)[0]));
      if (found == on_node_.end()) continue;
      const int64_t bytes = BytesTo(found->second) + results - reducers_.result_bytes;
      if (bytes < least) cheapest.clear();
      if (bytes <= least) cheapest.push_back(&found->second);
      least = std::min(least, bytes);
    }
    if (BytesTo(anywhere_) + results < least) cheapest = {&anywhere_};
    Owners owners;
    for (const Ends* ends : cheapest) {
      for (const auto& [row, end] : ends->list) {
        const auto stretch =
            row.subspan(static_cast<size_t>(end.first),
                        static_cast<size_t>(end.end) - static_cast<size_t>(end.first));
        owners.ranks.insert(owners.ranks.end(), stretch.begin(), stretch.end());
        owners.steps = std::max(owners.steps, end.steps);
      }
    }
    return owners;
  }

 private:
  struct Ending {
    absl::Span<const int> row;  // of contributors
    GatherEnd end;
  };
  // The ends with the fewest crossings.
  struct Ends {
    std::vector<Ending> list;

    void Add(const Ending& ending) {
      if (!list.empty() && ending.end.crossings > list[0].end.crossings) return;
      if (!list.empty() && ending.end.crossings < list[0].end.crossings) list.clear();
      list.push_back(ending);
    }
  };

  int NodeOf(int rank) const { return node_of_rank_[static_cast<size_t>(rank)]; }
  int64_t BytesTo(const Ends& ends) const {
    return ends.list[0].end.crossings * reducers_.contribution_bytes;
  }

  const Reducers& reducers_;
  const absl::Span<const int> node_of_rank_;
  Ends anywhere_;
  absl::flat_hash_map<int, Ends> on_node_;
};

// Needs of a reduction, by who can be their owner.
class ReducedNeeds {
 public:
  ReducedNeeds(const Reducers& reducers, absl::Span<const Want> wants,
               absl::Span<const int> node_of_rank, ServeTable* table)
      : reducers_(reducers),
        wants_(wants),
        node_of_rank_(node_of_rank),
        table_(*table),
        endings_(reducers, node_of_rank),
        holds_(reducers.holders.begin(), reducers.holders.end()),
        replicas_on_node_(ReplicasByNode()) {
    for (const int rank : reducers.holders) holder_nodes_.insert(NodeOf(rank));
  }

  void Add(int32_t want) {
    const absl::Span<const int> ranks = wants_[static_cast<size_t>(want)].ranks;
    std::vector<int> inside;
    std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(inside),
                 [this](int rank) { return holds_.contains(rank); });
    if (!inside.empty() || replicas_on_node_.empty()) return AddOwned(want, ranks, inside);
    const RanksByNode nodes(ranks, node_of_rank_);
    RankList others;
    for (size_t n = 0; n < nodes.nodes(); ++n) {
      const absl::Span<const int> of_node = nodes.of(n);
      const auto replicas = replicas_on_node_.find(NodeOf(of_node[0]));
      if (replicas == replicas_on_node_.end()) {
        others.insert(others.end(), of_node.begin(), of_node.end());
        continue;
      }
      const size_t turn = static_cast<size_t>(want) % replicas->second.size();
      const absl::Span<const int> kept = Keep(of_node);
      AddNeed(want, kept, RanksByNode(kept, node_of_rank_), {kept.begin(), kept.end()},
              replicas->second[turn]);
    }
    if (!others.empty()) AddOwned(want, Keep(others), {});
  }

  // The owners, and the numbers of the needs that they divide, those with the least choice first.
  using ByOwners = std::map<std::vector<int>, std::vector<int32_t>>;
  std::vector<const ByOwners::value_type*> ByChoice() const {
    std::vector<const ByOwners::value_type*> by_choice;
    by_choice.reserve(needs_of_.size());
    for (const auto& entry : needs_of_) by_choice.push_back(&entry);
    std::stable_sort(by_choice.begin(), by_choice.end(), [](const auto* a, const auto* b) {
      return a->first.size() < b->first.size();
    });
    return by_choice;
  }

 private:
  int NodeOf(int rank) const { return node_of_rank_[static_cast<size_t>(rank)]; }

  // For ranks that are served by those that hold contributions, as those `inside` do.
  void AddOwned(int32_t want, absl::Span<const int> ranks, absl::Span<const int> inside) {
    const RanksByNode nodes(ranks, node_of_rank_);
    if (reducers_.may_gather) {
      Endings::Owners owners = endings_.OwnersFor(nodes);
      std::vector<int> needing;
      const absl::flat_hash_set<int> needed(inside.begin(), inside.end());
      std::copy_if(owners.ranks.begin(), owners.ranks.end(), std::back_inserter(needing),
                   [&needed](int rank) { return needed.contains(rank); });
      const bool sends_back = !inside.empty() && needing.empty();
      if (!needing.empty()) owners.ranks = std::move(needing);
      if (GatheringPays(want, owners.steps + (sends_back ? 1 : 0))) {
        AddNeed(want, ranks, nodes, std::move(owners.ranks), -1);
        table_.needs.back().gathers = true;
        return;
      }
    }
    const absl::Span<const int> owners = inside.empty() ? reducers_.holders : inside;
    AddNeed(want, ranks, nodes, {owners.begin(), owners.end()}, -1);
  }

  // A sum that passes through two ranks is there as soon as single contributions are, or sooner.
  // Each one more has to wait for the one before, which for little takes longer than it saves.
  bool GatheringPays(int32_t want, int32_t steps) const {
    return steps <= 2 || BytesOf(want) >= kSharedNeedBytesMin;
  }

  int64_t BytesOf(int32_t want) const {
    return wants_[static_cast<size_t>(want)].elements * reducers_.contribution_bytes;
  }

  absl::Span<const int> Keep(absl::Span<const int> ranks) {
    return table_.lists.emplace_back(ranks.begin(), ranks.end());
  }

  // The replicas whose contributions are all on one reducing node.
  std::map<int, std::vector<int32_t>> ReplicasByNode() const {
    std::map<int, std::vector<int32_t>> replicas;
    for (size_t r = 0; r < reducers_.replicas(); ++r) {
      const absl::Span<const int> row = reducers_.ReplicaAt(r);
      const int node = NodeOf(row[0]);
      if (reducers_.reducing_nodes == nullptr || !reducers_.reducing_nodes->contains(node))
        continue;
      if (std::all_of(row.begin(), row.end(), [&](int rank) { return NodeOf(rank) == node; })) {
        replicas[node].push_back(static_cast<int32_t>(r));
      }
    }
    return replicas;
  }

  // `nodes`: of `ranks`.
  void AddNeed(int32_t want, absl::Span<const int> ranks, const RanksByNode& nodes,
               std::vector<int> owners, int32_t replica) {
    needs_of_[std::move(owners)].push_back(static_cast<int32_t>(table_.needs.size()));
    bool near = false;
    for (size_t n = 0; n < nodes.nodes(); ++n) {
      near = near || holder_nodes_.contains(NodeOf(nodes.of(n)[0]));
    }
    const int32_t stripes = near ? 1 : StripesOf(nodes.largest(0, nodes.nodes()), BytesOf(want));
    table_.needs.push_back({want, ranks, false, stripes, replica});
    table_.group_of_need.push_back(0);
  }

  const Reducers& reducers_;
  const absl::Span<const Want> wants_;
  const absl::Span<const int> node_of_rank_;
  ServeTable& table_;
  const Endings endings_;
  const absl::flat_hash_set<int> holds_;
  const std::map<int, std::vector<int32_t>> replicas_on_node_;
  absl::flat_hash_set<int> holder_nodes_;
  ByOwners needs_of_;
};

// Elements that ranks add up.
using Loads = absl::flat_hash_map<int, int64_t>;

// Adds what each candidate of `group` owns to `loads`.
void AddLoads(const ServeGroup& group, Loads* loads) {
  for (size_t q = 0; q < group.candidates.size(); ++q) {
    for (int32_t s = group.first_share[q]; s < group.first_share[q + 1]; ++s) {
      const Share& share = group.shares[static_cast<size_t>(s)];
      (*loads)[group.candidates[q]] += share.end - share.begin;
    }
  }
}

}  // namespace

ServeTable ServeReduced(const Reducers& reducers, absl::Span<const Want> wants,
                        absl::Span<const int> node_of_rank) {
  ServeTable table;
  ReducedNeeds needs(reducers, wants, node_of_rank, &table);
  for (size_t w = 0; w < wants.size(); ++w) needs.Add(static_cast<int32_t>(w));
  const Line line = {wants, table.needs};
  Loads loads;
  // Needs with more choice level the loads that the others leave uneven.
  for (const auto* entry : needs.ByChoice()) {
    const auto& [owners, of_owners] = *entry;
    ServeGroup group;
    group.candidates = owners;
    std::vector<int64_t> loads_of;
    loads_of.reserve(owners.size());
    for (int rank : owners) loads_of.push_back(loads[rank]);
    const int64_t total = TotalElements(line, of_owners);
    group.rotates = std::count(loads_of.begin(), loads_of.end(), loads_of[0]) ==
                    static_cast<ptrdiff_t>(loads_of.size());
    CutLine(line, of_owners,
            group.rotates ? EvenStretches(total, owners.size()) : LevelStretches(total, loads_of),
            reducers.contribution_bytes, &group);
    CutStripes(line, reducers.contribution_bytes, &group);
    AddLoads(group, &loads);
    table.AddGroup(std::move(group), of_owners);
  }
  return table;
}

}  // namespace sluice
