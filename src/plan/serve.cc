// Dividing needs between replicas.
//
// The needs of a group lie one after another on a line of elements, and each candidate takes a
// stretch of it: equal stretches, or, where some candidates already serve their own node, stretches
// that fill all to one level. A boundary inside a need moves to a row, or to the need's edge where
// the pieces would be too small to be worth a message.
#include "plan/serve.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"

namespace sluice {
namespace {

// A need is cut between senders only into pieces of at least this many bytes.
constexpr int64_t kSmallestShareBytes = 64 << 10;
constexpr int64_t kShareAlignmentBytes = 16;

// Rounds `offset` within `need` to where a cut is worth making: to rows, if they are short beside
// the `stretch` of a sender.
int64_t SnapCut(const Need& need, int64_t offset, int64_t stretch, int64_t element_bytes) {
  const int64_t smallest = (kSmallestShareBytes + element_bytes - 1) / element_bytes;
  if (need.elements < 2 * smallest) return 2 * offset < need.elements ? 0 : need.elements;
  const int64_t alignment =
      need.row_elements <= stretch / 32 ? need.row_elements : kShareAlignmentBytes / element_bytes;
  const int64_t snapped = (offset + alignment / 2) / alignment * alignment;
  if (snapped < smallest) return 0;
  if (need.elements - snapped < smallest) return need.elements;
  return snapped;
}

// Lays `members` (indices into needs) on the line and cuts it at the running sums of `stretches`.
void CutLine(absl::Span<const Need> needs, absl::Span<const int32_t> members,
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
      const Need& need = needs[static_cast<size_t>(members[m])];
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

int64_t TotalElements(absl::Span<const Need> needs, absl::Span<const int32_t> members) {
  int64_t total = 0;
  for (int32_t member : members) total += needs[static_cast<size_t>(member)].elements;
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

// Adds what each candidate of `group` sends to `loads`.
void AddLoads(const ServeGroup& group, const CandidateIndex& index, std::vector<int64_t>* loads) {
  for (size_t q = 0; q < group.candidates.size(); ++q) {
    for (int32_t s = group.first_share[q]; s < group.first_share[q + 1]; ++s) {
      const Share& share = group.shares[static_cast<size_t>(s)];
      (*loads)[index.at(group.candidates[q])] += share.end - share.begin;
    }
  }
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

ServeTable Serve(absl::Span<const int> candidates, absl::Span<const Need> needs,
                 absl::Span<const int> node_of_rank, int64_t element_bytes) {
  ServeTable table;
  table.group_of_need.assign(needs.size(), ServeTable::kLocal);
  CandidateIndex index;
  for (size_t i = 0; i < candidates.size(); ++i) index.emplace(candidates[i], i);

  std::map<int, NodeGroup> nodes = GroupByNode(candidates, node_of_rank);
  std::vector<int32_t> far;  // needs whose node holds none of the part
  for (size_t i = 0; i < needs.size(); ++i) {
    if (index.contains(needs[i].rank)) continue;
    const auto node = nodes.find(node_of_rank[static_cast<size_t>(needs[i].rank)]);
    std::vector<int32_t>& members = node == nodes.end() ? far : node->second.needs;
    members.push_back(static_cast<int32_t>(i));
  }

  std::vector<int64_t> loads(candidates.size(), 0);
  for (auto& [node, near] : nodes) {
    if (near.needs.empty()) continue;
    ServeGroup group;
    group.candidates = near.candidates;
    CutLine(needs, near.needs,
            EvenStretches(TotalElements(needs, near.needs), near.candidates.size()), element_bytes,
            &group);
    AddLoads(group, index, &loads);
    for (int32_t i : near.needs) {
      table.group_of_need[static_cast<size_t>(i)] = static_cast<int32_t>(table.groups.size());
    }
    table.groups.push_back(std::move(group));
  }
  if (far.empty()) return table;

  ServeGroup group;
  group.candidates.assign(candidates.begin(), candidates.end());
  group.rotates = table.groups.empty();
  CutLine(needs, far, LevelStretches(TotalElements(needs, far), loads), element_bytes, &group);
  for (int32_t i : far) {
    table.group_of_need[static_cast<size_t>(i)] = static_cast<int32_t>(table.groups.size());
  }
  table.groups.push_back(std::move(group));
  return table;
}

}  // namespace sluice
