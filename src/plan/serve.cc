// Dividing needs between replicas.
//
// The needs of a group lie one after another on a line of elements, and each candidate takes an
// equal stretch of it. Elements that a candidate gives to its own node do not count: receivers copy
// them, and no port is busy. A boundary inside a need moves to a row. It moves to the need's edge
// where the pieces would be too small to be worth a message.
#include "plan/serve.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "plan/fanout.h"
#include "plan/serve_line.h"
#include "tensor/round.h"

namespace sluice {
namespace {

// Each candidate's index in the list.
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

// In how many blocks `ranks` ranks are served that need the same of a part with `candidates` and
// `wants`: each block gets all bytes. A candidate then gives no more than a rank receives that
// passes it on.
size_t BlocksOf(size_t ranks, size_t candidates, size_t wants) {
  const size_t least = CeilDiv(ranks, kNeedRanksMax);
  return std::max<size_t>(1, std::min(least, candidates / wants));
}

// Stretches of this length differ by a few percent at most, wherever they are cut. Candidates then
// need not take turns. Turns would give each candidate more channels with several members.
constexpr int64_t kEvenStretchBytes = 4 << 20;

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

  // Adds the needs of those `ranks` that want number `want` and share a node with no candidate.
  // Little, or without relays: each rank is served for itself. No more nodes than candidates: the
  // ranks of a node are served together. More nodes: ranks of several nodes are served together.
  // True if no candidate will have more to send than another because of these needs.
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

void ServeTable::AddGroup(ServeGroup group, absl::Span<const int32_t> members) {
  for (int32_t need : members) {
    group_of_need[static_cast<size_t>(need)] = static_cast<int32_t>(groups.size());
  }
  groups.push_back(std::move(group));
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
    table.AddGroup(std::move(group), near.needs);
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
  table.AddGroup(std::move(group), far);
  return table;
}

}  // namespace sluice
