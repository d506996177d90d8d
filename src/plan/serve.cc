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

namespace sluice {
namespace {

// A need is cut between senders only into pieces of at least this many bytes.
constexpr int64_t kSmallestShareBytes = 64 << 10;
constexpr int64_t kShareAlignmentBytes = 16;

// Rounds `offset` within `need` to where a cut is worth making: to rows, if they are short beside
// the `stretch` of a sender.
int64_t SnapCut(const Want& need, int64_t offset, int64_t stretch, int64_t element_bytes) {
  const int64_t smallest = (kSmallestShareBytes + element_bytes - 1) / element_bytes;
  if (need.elements < 2 * smallest) return 2 * offset < need.elements ? 0 : need.elements;
  const int64_t alignment =
      need.row_elements <= stretch / 32 ? need.row_elements : kShareAlignmentBytes / element_bytes;
  const int64_t snapped = (offset + alignment / 2) / alignment * alignment;
  if (snapped < smallest) return 0;
  if (need.elements - snapped < smallest) return need.elements;
  return snapped;
}

// Needs with their regions.
struct Line {
  absl::Span<const Want> wants;
  absl::Span<const Need> needs;

  const Want& RegionOf(int32_t need) const {
    return wants[static_cast<size_t>(needs[static_cast<size_t>(need)].want)];
  }
};

// Lays `members` (indices of needs) on the line and cuts it at the running sums of `stretches`.
void CutLine(const Line& line, absl::Span<const int32_t> members,
             absl::Span<const int64_t> stretches, int64_t element_bytes, ServeGroup* group) {
  group->first_share.assign(1, 0);
  size_t m = 0;
  int64_t done = 0;        // elements of members[m] already given out
  int64_t line_begin = 0;  // where members[m] begins on the line
  int64_t boundary = 0;
  for (size_t q = 0; q < stretches.size(); ++q) {
    boundary += stretches[q];
    const bool last = q + 1 == stretches.size();
    while (m < members.size()) {
      const Want& need = line.RegionOf(members[m]);
      int64_t cut = need.elements;
      if (!last && boundary < line_begin + need.elements) {
        cut =
            SnapCut(need, std::max<int64_t>(0, boundary - line_begin), stretches[q], element_bytes);
      }
      cut = std::max(cut, done);
      if (cut > done) group->shares.push_back({members[m], done, cut});
      done = cut;
      if (cut < need.elements) break;
      line_begin += need.elements;
      done = 0;
      ++m;
    }
    group->first_share.push_back(static_cast<int32_t>(group->shares.size()));
  }
}

int64_t TotalElements(const Line& line, absl::Span<const int32_t> members) {
  int64_t total = 0;
  for (int32_t member : members) total += line.RegionOf(member).elements;
  return total;
}

// `count` stretches that add up to `total` and differ by at most one.
std::vector<int64_t> EvenStretches(int64_t total, size_t count) {
  const int64_t parts = static_cast<int64_t>(count);
  std::vector<int64_t> stretches(count, total / parts);
  for (int64_t i = 0; i < total % parts; ++i) ++stretches[static_cast<size_t>(i)];
  return stretches;
}

// Stretches that add up to `total` and, on top of `loads`, fill all to the lowest common level.
std::vector<int64_t> LevelStretches(int64_t total, absl::Span<const int64_t> loads) {
  std::vector<int64_t> sorted(loads.begin(), loads.end());
  std::sort(sorted.begin(), sorted.end());
  int64_t below = 0;  // sum of the loads under the level
  size_t count = 0;
  while (count < sorted.size() && sorted[count] * static_cast<int64_t>(count) - below < total) {
    below += sorted[count++];
  }
  const int64_t water = total + below;
  const int64_t level = water / static_cast<int64_t>(std::max<size_t>(count, 1));
  int64_t rest = total;
  std::vector<int64_t> stretches(loads.size(), 0);
  for (size_t i = 0; i < loads.size(); ++i) {
    stretches[i] = std::min(rest, std::max<int64_t>(0, level - loads[i]));
    rest -= stretches[i];
  }
  if (!stretches.empty()) stretches.back() += rest;  // the remainder of the division
  return stretches;
}

// Where each candidate stands in the list.
using CandidateIndex = absl::flat_hash_map<int, size_t>;

// Candidates and needs of one node.
struct NodeGroup {
  std::vector<int> candidates;
  std::vector<int32_t> needs;
};

// Groups candidates by node, in candidate order. Ordered, so that all ranks agree.
std::map<int, NodeGroup> GroupByNode(absl::Span<const int> candidates,
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

// Adds the needs of those `ranks` that want number `want`: one for all of them if each candidate
// would have to send to several, else one for each.
void AddNeeds(int32_t want, const Want& region, const RankList& ranks, size_t candidates,
              int64_t element_bytes, std::vector<int32_t>* members, ServeTable* table) {
  const auto add = [&](RankList of) {
    members->push_back(static_cast<int32_t>(table->needs.size()));
    table->needs.push_back({want, std::move(of)});
    table->group_of_need.push_back(0);
  };
  if (ranks.empty()) return;
  const bool together =
      ranks.size() > candidates && region.elements * element_bytes >= kSharedNeedBytesMin;
  if (together) return add(ranks);
  for (int rank : ranks) add({rank});
}

// Adds what each candidate of `group` sends to `loads`.
void AddLoads(const ServeGroup& group, const CandidateIndex& index, std::vector<int64_t>* loads) {
  for (size_t q = 0; q < group.candidates.size(); ++q) {
    for (int32_t s = group.first_share[q]; s < group.first_share[q + 1]; ++s) {
      const Share& share = group.shares[static_cast<size_t>(s)];
      (*loads)[index.at(group.candidates[q])] += share.end - share.begin;
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
  CandidateIndex index;
  for (size_t i = 0; i < candidates.size(); ++i) index.emplace(candidates[i], i);

  std::map<int, NodeGroup> nodes = GroupByNode(candidates, node_of_rank);
  std::vector<int32_t> far;  // needs whose node holds none of the part
  for (size_t w = 0; w < wants.size(); ++w) {
    RankList distant;
    std::map<int, RankList> near;
    for (int rank : wants[w].ranks) {
      if (index.contains(rank)) continue;
      const int node = node_of_rank[static_cast<size_t>(rank)];
      (nodes.contains(node) ? near[node] : distant).push_back(rank);
    }
    const int32_t want = static_cast<int32_t>(w);
    for (const auto& [node, ranks] : near) {
      NodeGroup& group = nodes.at(node);
      // Within a node there is no port that one sender would keep busy: whoever receives copies.
      AddNeeds(want, wants[w], ranks, ranks.size(), element_bytes, &group.needs, &table);
    }
    AddNeeds(want, wants[w], distant, candidates.size(), element_bytes, &far, &table);
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
    AddLoads(group, index, &loads);
    AddGroup(std::move(group), near.needs, &table);
  }
  if (far.empty()) return table;

  ServeGroup group;
  group.candidates.assign(candidates.begin(), candidates.end());
  group.rotates = table.groups.empty();
  CutLine(line, far, LevelStretches(TotalElements(line, far), loads), element_bytes, &group);
  AddGroup(std::move(group), far, &table);
  return table;
}

ServeTable ServeReduced(absl::Span<const int> candidates, absl::Span<const Want> wants,
                        int64_t element_bytes) {
  ServeTable table;
  CandidateIndex index;
  for (size_t i = 0; i < candidates.size(); ++i) index.emplace(candidates[i], i);

  // Wants by who can reduce them: those that need them and could, or else everyone.
  std::map<std::vector<int>, std::vector<int32_t>> needs_of;
  for (size_t w = 0; w < wants.size(); ++w) {
    std::vector<int> inside;
    for (int rank : wants[w].ranks) {
      if (index.contains(rank)) inside.push_back(rank);
    }
    if (inside.empty()) inside.assign(candidates.begin(), candidates.end());
    needs_of[std::move(inside)].push_back(static_cast<int32_t>(table.needs.size()));
    table.needs.push_back({static_cast<int32_t>(w), wants[w].ranks});
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
    AddLoads(group, index, &loads);
    AddGroup(std::move(group), needs, &table);
  }
  return table;
}

}  // namespace sluice
