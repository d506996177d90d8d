// Dividing needs between replicas.
//
// The needs of a group lie one after another on a line of elements, and each candidate takes a
// stretch of it: equal stretches, or, where some candidates already serve their own node, stretches
// that fill all to one level. A boundary inside a need moves to a row, or to the need's edge where
// the pieces would be too small to be worth a message.
#include "plan/serve.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
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
std::map<int, NodeGroup> GroupByNode(absl::Span<const int> candidates,
                                     absl::Span<const int> node_of_rank) {
  std::map<int, NodeGroup> nodes;
  if (node_of_rank.empty()) return nodes;
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

// Adds a need of `ranks` that want number `want`.
void AddNeed(int32_t want, absl::Span<const int> ranks, bool apart, std::vector<int32_t>* members,
             ServeTable* table) {
  members->push_back(static_cast<int32_t>(table->needs.size()));
  table->needs.push_back({want, ranks, apart});
  table->group_of_need.push_back(0);
}

// Adds the needs of those `ranks` that want number `want` and share a node with no candidate:
// together if each candidate would have to send to several, else each for itself. True if no
// candidate will have more to send than another because of them.
bool AddDistant(int32_t want, absl::Span<const int> ranks, absl::Span<const Want> wants,
                size_t candidates, int64_t element_bytes, std::vector<int32_t>* members,
                ServeTable* table) {
  const int64_t bytes = wants[static_cast<size_t>(want)].elements * element_bytes;
  if (ranks.size() <= candidates || bytes < kSharedNeedBytesMin) {
    AddNeed(want, ranks, true, members, table);
    return false;
  }
  const size_t blocks = BlocksOf(ranks.size(), candidates, wants.size());
  for (size_t b = 0; b < blocks; ++b) {
    const size_t begin = ranks.size() * b / blocks;
    const size_t end = ranks.size() * (b + 1) / blocks;
    AddNeed(want, ranks.subspan(begin, end - begin), false, members, table);
  }
  return blocks > 1;
}

// Adds what each candidate of `group` sends to `loads`.
void AddLoads(const ServeGroup& group, absl::Span<const Need> needs, const CandidateIndex& index,
              std::vector<int64_t>* loads) {
  for (size_t q = 0; q < group.candidates.size(); ++q) {
    for (int32_t s = group.first_share[q]; s < group.first_share[q + 1]; ++s) {
      const Share& share = group.shares[static_cast<size_t>(s)];
      const Need& need = needs[static_cast<size_t>(share.need)];
      const int64_t copies = need.apart ? share.end_rank - share.first_rank : 1;
      (*loads)[index.at(group.candidates[q])] += copies * (share.end - share.begin);
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
                 absl::Span<const int> node_of_rank, int64_t element_bytes) {
  ServeTable table;
  // Who is on which node matters only where candidates may be near those who want.
  const CandidateIndex index = node_of_rank.empty() ? CandidateIndex() : IndexOf(candidates);
  std::map<int, NodeGroup> nodes = GroupByNode(candidates, node_of_rank);
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
        AddNeed(want, table.lists.emplace_back(std::move(ranks)), true, &nodes.at(node).needs,
                &table);
      }
      distant = table.lists.emplace_back(std::move(others));
    }
    if (distant.empty()) continue;
    even = AddDistant(want, distant, wants, candidates.size(), element_bytes, &far, &table) && even;
  }

  const Line line = {wants, table.needs};
  std::vector<int64_t> loads(candidates.size(), 0);
  for (auto& [node, near] : nodes) {
    if (near.needs.empty()) continue;
    ServeGroup group;
    group.candidates = near.candidates;
    CutLine(line, near.needs,
            EvenStretches(TotalElements(line, near.needs), near.candidates.size()), element_bytes,
            &group);
    AddLoads(group, table.needs, index, &loads);
    AddGroup(std::move(group), near.needs, &table);
  }
  if (far.empty()) return table;

  ServeGroup group;
  group.candidates.assign(candidates.begin(), candidates.end());
  group.rotates = table.groups.empty() && !even;
  CutLine(line, far, LevelStretches(TotalElements(line, far), loads), element_bytes, &group);
  AddGroup(std::move(group), far, &table);
  return table;
}

ServeTable ServeReduced(absl::Span<const int> candidates, absl::Span<const Want> wants,
                        int64_t element_bytes) {
  ServeTable table;
  const CandidateIndex index = IndexOf(candidates);

  // Wants by who can reduce them: those that need them and could, or else everyone.
  std::map<std::vector<int>, std::vector<int32_t>> needs_of;
  for (size_t w = 0; w < wants.size(); ++w) {
    std::vector<int> inside;
    for (int rank : wants[w].ranks) {
      if (index.contains(rank)) inside.push_back(rank);
    }
    if (inside.empty()) inside.assign(candidates.begin(), candidates.end());
    needs_of[std::move(inside)].push_back(static_cast<int32_t>(table.needs.size()));
    table.needs.push_back({static_cast<int32_t>(w), wants[w].ranks, false});
    table.group_of_need.push_back(0);
  }
  // Those with the least choice first; the others level what these leave uneven.
  std::vector<const std::pair<const std::vector<int>, std::vector<int32_t>>*> by_choice;
  by_choice.reserve(needs_of.size());
  for (const auto& entry : needs_of) by_choice.push_back(&entry);
  std::stable_sort(by_choice.begin(), by_choice.end(),
                   [](const auto* a, const auto* b) { return a->first.size() < b->first.size(); });
  const Line line = {wants, table.needs};
  std::vector<int64_t> loads(candidates.size(), 0);
  for (const auto* entry : by_choice) {
    const auto& [owners, needs] = *entry;
    ServeGroup group;
    group.candidates = owners;
    std::vector<int64_t> loads_of;
    loads_of.reserve(owners.size());
    for (int rank : owners) loads_of.push_back(loads[index.at(rank)]);
    const int64_t total = TotalElements(line, needs);
    group.rotates = std::count(loads_of.begin(), loads_of.end(), loads_of[0]) ==
                    static_cast<ptrdiff_t>(loads_of.size());
    CutLine(line, needs,
            group.rotates ? EvenStretches(total, owners.size()) : LevelStretches(total, loads_of),
            element_bytes, &group);
    AddLoads(group, table.needs, index, &loads);
    AddGroup(std::move(group), needs, &table);
  }
  return table;
}

}  // namespace sluice
