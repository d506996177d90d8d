// Stretches of contributions by node, and their adders.
#include "plan/gathering.h"

#include <algorithm>

namespace sluice {
namespace {

// Contributions [begin, end), all of one node.
struct Stretch {
  size_t begin = 0;
  size_t end = 0;

  size_t size() const { return end - begin; }
};
using Stretches = absl::InlinedVector<Stretch, 4>;

Stretches StretchesOf(absl::Span<const int> contributors, absl::Span<const int> node_of_rank) {
  Stretches stretches;
  int last = -1;
  for (size_t i = 0; i < contributors.size(); ++i) {
    const int node = node_of_rank[static_cast<size_t>(contributors[i])];
    if (stretches.empty() || node != last) stretches.push_back({i, i});
    stretches.back().end = i + 1;
    last = node;
  }
  return stretches;
}

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
  const Stretches stretches = StretchesOf(contributors, node_of_rank);
  size_t own = 0;
  while (stretches[own].end <= number) ++own;
  GatherSteps steps;
  size_t first = 0;
  for (size_t s = 0; s < own; ++s) {
    const Stretch& stretch = stretches[s];
    if (stretch.size() == 1) continue;  // crosses alone, to whoever adds next
    const size_t turn = (number - stretches[own].begin) % stretch.size();
    steps.push_back({static_cast<int32_t>(first), contributors[stretch.begin + turn]});
    first = stretch.end;
  }
  steps.push_back({static_cast<int32_t>(first), owner});
  return steps;
}

absl::Span<const int> GatheringOwners(absl::Span<const int> contributors,
                                      absl::Span<const int> node_of_rank) {
  const Stretches stretches = StretchesOf(contributors, node_of_rank);
  const bool several = std::any_of(stretches.begin(), stretches.end() - 1,
                                   [](const Stretch& each) { return each.size() > 1; });
  return several ? contributors.subspan(stretches.back().begin) : contributors;
}

size_t StepOf(const GatherSteps& steps, int64_t number) {
  size_t step = steps.size() - 1;
  while (step > 0 && steps[step].first > number) --step;
  return step;
}

}  // namespace sluice
