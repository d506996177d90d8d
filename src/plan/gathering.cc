// Spans of contributions by node, and their adders.
#include "plan/gathering.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace sluice {
namespace {

// Contributions [begin, end), all of one node.
struct NodeSpan {
  size_t begin = 0;
  size_t end = 0;
  int node = -1;

  size_t size() const { return end - begin; }
};
using NodeSpans = absl::InlinedVector<NodeSpan, 4>;

NodeSpans NodeSpansOf(absl::Span<const int> contributors, absl::Span<const int> node_of_rank) {
  NodeSpans spans;
  for (size_t i = 0; i < contributors.size(); ++i) {
    const int node = node_of_rank[static_cast<size_t>(contributors[i])];
    if (spans.empty() || spans.back().node != node) spans.push_back({i, i, node});
    spans.back().end = i + 1;
  }
  return spans;
}

// Contributions that are still to cross, by the node that has them.
class Waiting {
 public:
  void Add(int node, int64_t contributions) {
    of_node_[node] += contributions;
    total_ += contributions;
  }
  void Clear() {
    of_node_.clear();
    total_ = 0;
  }
  int64_t NotOn(int node) const {
    const auto found = of_node_.find(node);
    return total_ - (found == of_node_.end() ? 0 : found->second);
  }

 private:
  absl::flat_hash_map<int, int64_t> of_node_;
  int64_t total_ = 0;
};

}  // namespace

GatherSteps GatherDirectly(int owner) { return {{0, owner}}; }

bool Adds(const GatherSteps& steps, int rank) {
  return std::any_of(steps.begin(), steps.end(),
                     [rank](const GatherStep& step) { return step.adder == rank; });
}

GatherSteps GatherByNode(int owner, absl::Span<const int> contributors,
                         absl::Span<const int> node_of_rank) {
  const auto place = std::find(contributors.begin(), contributors.end(), owner);
  if (place == contributors.end()) return GatherDirectly(owner);
  const size_t number = static_cast<size_t>(place - contributors.begin());
  const NodeSpans spans = NodeSpansOf(contributors, node_of_rank);
  size_t own = 0;
  while (spans[own].end <= number) ++own;
  GatherSteps steps;
  size_t first = 0;
  for (size_t s = 0; s < own; ++s) {
    const NodeSpan& span = spans[s];
    if (span.size() == 1) continue;  // crosses alone, to whoever adds next
    const size_t turn = (number - spans[own].begin) % span.size();
    steps.push_back({static_cast<int32_t>(first), contributors[span.begin + turn]});
    first = span.end;
  }
  steps.push_back({static_cast<int32_t>(first), owner});
  return steps;
}

std::vector<GatherEnd> GatherEnds(absl::Span<const int> contributors,
                                  absl::Span<const int> node_of_rank) {
  const NodeSpans spans = NodeSpansOf(contributors, node_of_rank);
  std::vector<GatherEnd> ends;
  ends.reserve(spans.size());
  int64_t crossed = 0;  // up to the last sum
  int adder = -1;       // the node that has it
  int32_t sums = 0;     // so far
  Waiting alone;        // what comes after that
  for (const NodeSpan& span : spans) {
    const int64_t here =
        crossed + (adder >= 0 && adder != span.node ? 1 : 0) + alone.NotOn(span.node);
    ends.push_back({static_cast<int32_t>(span.begin), static_cast<int32_t>(span.end), span.node,
                    here, sums + 1});
    if (span.size() == 1) {
      alone.Add(span.node, 1);
      continue;
    }
    ++sums;
    crossed = here;
    adder = span.node;
    alone.Clear();
  }
  Waiting after;  // an end, and added up there
  for (size_t s = spans.size(); s-- > 0;) {
    ends[s].crossings += after.NotOn(spans[s].node);
    after.Add(spans[s].node, static_cast<int64_t>(spans[s].size()));
  }
  return ends;
}

size_t StepOf(const GatherSteps& steps, int64_t number) {
  size_t step = steps.size() - 1;
  while (step > 0 && steps[step].first > number) --step;
  return step;
}

}  // namespace sluice
