// Dividing needs between replicas.
//
// The needs of a group lie one after another on a line of elements, and each candidate takes a
// stretch of it: equal stretches, or, where some candidates already reduce more than others,
// stretches that fill all to one level. What a candidate gives to its own node does not count: who
// receives copies it, and no port is busy. A boundary inside a need moves to a row, or to the
// need's edge where the pieces would be too small to be worth a message.
#include "plan/serve.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "plan/fanout.h"
#include "plan/gathering.h"
#include "plan/serve_line.h"

namespace sluice {
namespace {

// Where each candidate stands in the list.
using CandidateIndex = absl::flat_hash_map<int, size_t>;

CandidateIndex IndexOf(absl::Span<const int> candidates) {
  CandidateIndex index;
  index.reserve(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) index.emplace(candidates[i], i);
  return index;
}

// Candidates and needs of one node.
struct NodeGroup {
  std::vector<int> candidates;
  std::vector<int32_t> needs;
};

// Groups candidates by node, in candidate order. Ordered, so that all ranks agree.
std::map<int, NodeGroup> NodeGroups(absl::Span<const int> candidates,
                                    absl::Span<const int> node_of_rank) {
  std::map<int, NodeGroup> nodes;
  for (int rank : candidates) {
    nodes[node_of_rank[static_cast<size_t>(rank)]].candidates.push_back(rank);
  }
  return nodes;
}

// Below this many bytes a message more is cheaper than a bucket with several members, which joins
// fewer small chunks.
constexpr int64_t kSharedNeedBytesMin = 64 << 10;

// In how many blocks `ranks` ranks are served that need the same of a part with `candidates` and
// `wants`: each block gets all bytes. A candidate then gives no more than a rank receives that
// passes it on.
size_t BlocksOf(size_t ranks, size_t candidates, size_t wants) {
  const size_t least = (ranks + kNeedRanksMax - 1) / kNeedRanksMax;
  return std::max<size_t>(1, std::min(least, candidates / wants));
}

// Stretches of so many bytes differ by a few percent at most, wherever they are cut. Candidates
// need not take turns then, which would give each more channels with several members.
constexpr int64_t kEvenStretchBytes = 4 << 20;

// Least bytes of a stripe: a bucket with several members takes a slot at all of them.
constexpr int64_t kStripeBytesMin = 256 << 10;

// How many ranks of a node the bytes of a need come to first: all of its largest node, if there is
// enough for each.
int32_t StripesOf(size_t largest, int64_t bytes) {
  const bool worth = bytes >= static_cast<int64_t>(largest) * kStripeBytesMin;
  return worth ? static_cast<int32_t>(largest) : 1;
}

// The needs that are served alike, as they are added.
class Needs {
 public:
  Needs(absl::Span<const Want> wants, size_t candidates, absl::Span<const int> node_of_rank,
        bool relay, int64_t element_bytes, ServeTable* table)
      : wants_(wants),
        candidates_(candidates),
        node_of_rank_(node_of_rank),
        relay_(relay),
        element_bytes_(element_bytes),
        table_(*table) {}

  // Adds a need of `ranks` that want number `want`.
  void Add(int32_t want, absl::Span<const int> ranks, bool apart, int32_t stripes,
           std::vector<int32_t>* members) {
    members->push_back(static_cast<int32_t>(table_.needs.size()));
    table_.needs.push_back({want, ranks, apart, stripes});
    table_.group_of_need.push_back(0);
  }

  // Adds the needs of those `ranks` that want number `want` and share a node with no candidate:
  // those of a node together; those of all nodes together if each candidate would have to send to
  // several nodes; little, or without relays, each for itself. True if no candidate will have more
  // to send than another because of them.
  bool AddDistant(int32_t want, absl::Span<const int> ranks, std::vector<int32_t>* members) {
    const int64_t bytes = wants_[static_cast<size_t>(want)].elements * element_bytes_;
    if (!relay_ || bytes < kSharedNeedBytesMin || ranks.size() == 1) {
      Add(want, ranks, true, 1, members);
      return false;
    }
    const RanksByNode nodes(ranks, node_of_rank_);
    if (nodes.nodes() > candidates_) return AddBlocks(want, ranks, nodes, bytes, members);
    AddNodes(want, ranks, nodes, bytes, members);
    return false;
  }

 private:
  void AddNodes(int32_t want, absl::Span<const int> ranks, const RanksByNode& nodes, int64_t bytes,
                std::vector<int32_t>* members) {
    if (nodes.nodes() == ranks.size()) {
      Add(want, ranks, true, 1, members);
      return;
    }
    RankList alone;
    for (size_t n = 0; n < nodes.nodes(); ++n) {
      const absl::Span<const int> of_node = nodes.of(n);
      if (of_node.size() == 1) {
        alone.push_back(of_node[0]);
      } else {
        Add(want, Keep(of_node), false, StripesOf(of_node.size(), bytes), members);
      }
    }
    if (!alone.empty()) Add(want, Keep(alone), true, 1, members);
  }

  bool AddBlocks(int32_t want, absl::Span<const int> ranks, const RanksByNode& nodes, int64_t bytes,
                 std::vector<int32_t>* members) {
    const size_t blocks =
        std::min(nodes.nodes(), BlocksOf(ranks.size(), candidates_, wants_.size()));
    for (size_t b = 0; b < blocks; ++b) {
      const size_t begin = nodes.nodes() * b / blocks;
      const size_t end = nodes.nodes() * (b + 1) / blocks;
      const absl::Span<const int> block = nodes.nodes() == ranks.size()
                                              ? ranks.subspan(begin, end - begin)
                                              : Keep(nodes.of(begin, end));
      Add(want, block, false, StripesOf(nodes.largest(begin, end), bytes), members);
    }
    return blocks > 1;
  }

  absl::Span<const int> Keep(absl::Span<const int> ranks) {
    return table_.lists.emplace_back(ranks.begin(), ranks.end());
  }

  const absl::Span<const Want> wants_;
  const size_t candidates_;
  const absl::Span<const int> node_of_rank_;
  const bool relay_;
  const int64_t element_bytes_;
  ServeTable& table_;
};

// Elements that ranks send, or add up.
using Loads = absl::flat_hash_map<int, int64_t>;

// Adds what each candidate of `group` sends to `loads`.
void AddLoads(const ServeGroup& group, absl::Span<const Need> needs, Loads* loads) {
  for (size_t q = 0; q < group.candidates.size(); ++q) {
    for (int32_t s = group.first_share[q]; s < group.first_share[q + 1]; ++s) {
      const Share& share = group.shares[static_cast<size_t>(s)];
      const Need& need = needs[static_cast<size_t>(share.need)];
      const int64_t copies = need.apart ? share.end_rank - share.first_rank : 1;
      (*loads)[group.candidates[q]] += copies * (share.end - share.begin);
    }
  }
}

void AddGroup(ServeGroup group, absl::Span<const int32_t> needs, ServeTable* table) {
  for (int32_t need : needs) {
    table->group_of_need[static_cast<size_t>(need)] = static_cast<int32_t>(table->groups.size());
  }
  table->groups.push_back(std::move(group));
}

}  // namespace

size_t ServeGroup::SlotOf(size_t candidate, int64_t rotation) const {
  if (!rotates) return candidate;
  const size_t count = candidates.size();
  return (candidate + count - static_cast<size_t>(rotation) % count) % count;
}

size_t ServeGroup::CandidateOf(size_t slot, int64_t rotation) const {
  if (!rotates) return slot;
  const size_t count = candidates.size();
  return (slot + static_cast<size_t>(rotation) % count) % count;
}

ServeTable Serve(absl::Span<const int> candidates, absl::Span<const Want> wants,
                 absl::Span<const int> node_of_rank, bool nodes_meet, bool relay,
                 int64_t element_bytes) {
  ServeTable table;
  Needs needs(wants, candidates.size(), node_of_rank, relay, element_bytes, &table);
  const CandidateIndex index = nodes_meet ? IndexOf(candidates) : CandidateIndex();
  std::map<int, NodeGroup> nodes;
  if (nodes_meet) nodes = NodeGroups(candidates, node_of_rank);
  std::vector<int32_t> far;  // needs whose node holds none of the part
  bool even = true;          // they load all candidates alike
  for (size_t w = 0; w < wants.size(); ++w) {
    const int32_t want = static_cast<int32_t>(w);
    absl::Span<const int> distant = wants[w].ranks;
    if (!nodes.empty()) {
      std::map<int, RankList> near;
      RankList others;
      for (int rank : wants[w].ranks) {
        if (index.contains(rank)) continue;
        const int node = node_of_rank[static_cast<size_t>(rank)];
        (nodes.contains(node) ? near[node] : others).push_back(rank);
      }
      for (auto& [node, ranks] : near) {
        // Within a node there is no port that one sender would keep busy: whoever receives copies.
        needs.Add(want, table.lists.emplace_back(std::move(ranks)), true, 1, &nodes.at(node).needs);
      }
      distant = table.lists.emplace_back(std::move(others));
    }
    if (distant.empty()) continue;
    even = needs.AddDistant(want, distant, &far) && even;
  }

  const Line line = {wants, table.needs};
  for (auto& [node, near] : nodes) {
    if (near.needs.empty()) continue;
    ServeGroup group;
    group.candidates = near.candidates;
    CutLine(line, near.needs,
            EvenStretches(TotalElements(line, near.needs), near.candidates.size()), element_bytes,
            &group);
    AddGroup(std::move(group), near.needs, &table);
  }
  if (far.empty()) return table;

  ServeGroup group;
  group.candidates.assign(candidates.begin(), candidates.end());
  const int64_t total = TotalElements(line, far);
  const bool together = std::none_of(far.begin(), far.end(), [&table](int32_t need) {
    return table.needs[static_cast<size_t>(need)].apart;
  });
  const int64_t stretch_bytes = total / static_cast<int64_t>(candidates.size()) * element_bytes;
  group.rotates = !even && !(together && stretch_bytes >= kEvenStretchBytes);
  CutLine(line, far, EvenStretches(total, candidates.size()), element_bytes, &group);
  CutStripes(line, element_bytes, &group);
  AddGroup(std::move(group), far, &table);
  return table;
}

namespace {

// Needs of a reduction, by who can be their owner.
class ReducedNeeds {
 public:
  ReducedNeeds(const Reducers& reducers, absl::Span<const Want> wants,
               absl::Span<const int> node_of_rank, int64_t element_bytes, ServeTable* table)
      : reducers_(reducers),
        wants_(wants),
        node_of_rank_(node_of_rank),
        element_bytes_(element_bytes),
        table_(*table),
        holds_(reducers.holders.begin(), reducers.holders.end()),
        replicas_on_node_(ReplicasByNode()) {
    for (const int rank : reducers.holders) holder_nodes_.insert(NodeOf(rank));
  }

  void Add(int32_t want) {
    const absl::Span<const int> ranks = wants_[static_cast<size_t>(want)].ranks;
    std::vector<int> inside;
    std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(inside),
                 [this](int rank) { return holds_.contains(rank); });
    if (!inside.empty()) return AddNeed(want, ranks, std::move(inside), -1);
    if (replicas_on_node_.empty()) return AddDistant(want, ranks);
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
      AddNeed(want, kept, {kept.begin(), kept.end()}, replicas->second[turn]);
    }
    if (!others.empty()) AddDistant(want, Keep(others));
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

  // For ranks that are served by those that hold contributions.
  void AddDistant(int32_t want, absl::Span<const int> ranks) {
    std::vector<int> owners;
    const bool gathers = reducers_.may_gather && GatheringPays(want);
    for (size_t r = 0; r < Replicas(); ++r) {
      const absl::Span<const int> row =
          gathers ? GatheringOwners(RowOf(r), node_of_rank_) : RowOf(r);
      owners.insert(owners.end(), row.begin(), row.end());
    }
    AddNeed(want, ranks, std::move(owners), -1);
    table_.needs.back().gathers = gathers;
  }

  // A sum that passes through two nodes is there as soon as single contributions are, or sooner.
  // Each node more has to wait for the one before, which for little takes longer than it saves.
  bool GatheringPays(int32_t want) const {
    if (BytesOf(want) >= kSharedNeedBytesMin) return true;
    for (size_t r = 0; r < Replicas(); ++r) {
      const absl::Span<const int> row = RowOf(r);
      if (GatherByNode(row.back(), row, node_of_rank_).size() > 2) return false;
    }
    return true;
  }

  size_t Replicas() const { return reducers_.holders.size() / reducers_.contributions; }
  absl::Span<const int> RowOf(size_t replica) const {
    return reducers_.holders.subspan(replica * reducers_.contributions, reducers_.contributions);
  }
  int64_t BytesOf(int32_t want) const {
    return wants_[static_cast<size_t>(want)].elements * element_bytes_;
  }

  absl::Span<const int> Keep(absl::Span<const int> ranks) {
    return table_.lists.emplace_back(ranks.begin(), ranks.end());
  }

  // The replicas whose contributions are all on one reducing node.
  std::map<int, std::vector<int32_t>> ReplicasByNode() const {
    std::map<int, std::vector<int32_t>> replicas;
    for (size_t r = 0; r < Replicas(); ++r) {
      const absl::Span<const int> row = RowOf(r);
      const int node = NodeOf(row[0]);
      if (reducers_.reducing_nodes == nullptr || !reducers_.reducing_nodes->contains(node))
        continue;
      if (std::all_of(row.begin(), row.end(), [&](int rank) { return NodeOf(rank) == node; })) {
        replicas[node].push_back(static_cast<int32_t>(r));
      }
    }
    return replicas;
  }

  void AddNeed(int32_t want, absl::Span<const int> ranks, std::vector<int> owners,
               int32_t replica) {
    needs_of_[std::move(owners)].push_back(static_cast<int32_t>(table_.needs.size()));
    const RanksByNode nodes(ranks, node_of_rank_);
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
  const int64_t element_bytes_;
  ServeTable& table_;
  const absl::flat_hash_set<int> holds_;
  const std::map<int, std::vector<int32_t>> replicas_on_node_;
  absl::flat_hash_set<int> holder_nodes_;
  ByOwners needs_of_;
};

}  // namespace

ServeTable ServeReduced(const Reducers& reducers, absl::Span<const Want> wants,
                        absl::Span<const int> node_of_rank, int64_t element_bytes) {
  ServeTable table;
  ReducedNeeds needs(reducers, wants, node_of_rank, element_bytes, &table);
  for (size_t w = 0; w < wants.size(); ++w) needs.Add(static_cast<int32_t>(w));
  const Line line = {wants, table.needs};
  Loads loads;
  // Those with more choice level what the others leave uneven.
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
            element_bytes, &group);
    CutStripes(line, element_bytes, &group);
    AddLoads(group, table.needs, &loads);
    AddGroup(std::move(group), of_owners, &table);
  }
  return table;
}

}  // namespace sluice
