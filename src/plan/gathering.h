// Decides in which order, and by whom, the contributions to a reduction are added up.
//
// Contributions are added in their order, whoever adds. So a node can add up what it holds before
// it crosses in two cases only. Either its contributions come first, or the sum of all before them
// is there. The sum passes from node to node, and each node adds what it has.
#ifndef SLUICE_SRC_PLAN_GATHERING_H_
#define SLUICE_SRC_PLAN_GATHERING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace sluice {

// A span of the contributions, and who adds them to the sum of all before.
struct GatherStep {
  int32_t first = 0;  // number of its first contribution; its last is the one before the next step
  int adder = -1;     // rank; passes its sum to the next step's adder. The last one is the owner.

  friend bool operator==(const GatherStep&, const GatherStep&) = default;
};
using GatherSteps = absl::InlinedVector<GatherStep, 2>;

// One step, by the owner.
GatherSteps GatherDirectly(int owner);

// One step for each span of several contributors of one node that lies before the owner's
// span, in the order of addition. The owner's step is last, and adds the rest. A step also adds
// the single contributors that come before its span. The adder of a step is one of its span's
// ranks. Owners on one node have different adders, as far as there are enough. If `owner` is no
// contributor, there is one step.
GatherSteps GatherByNode(int owner, absl::Span<const int> contributors,
                         absl::Span<const int> node_of_rank);

// A span of contributors of one node, one of whom may be the owner.
struct GatherEnd {
  int32_t first = 0;  // numbers [first, end) of their contributions
  int32_t end = 0;
  int node = -1;
  int64_t crossings = 0;  // of contributions and sums, between nodes, by GatherByNode
  int32_t steps = 1;      // of GatherByNode, with an owner here

  friend bool operator==(const GatherEnd&, const GatherEnd&) = default;
};

// In the order of addition.
std::vector<GatherEnd> GatherEnds(absl::Span<const int> contributors,
                                  absl::Span<const int> node_of_rank);

// True if `rank` adds in one of the steps.
bool Adds(const GatherSteps& steps, int rank);

// The step that contribution `number` belongs to.
size_t StepOf(const GatherSteps& steps, int64_t number);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_GATHERING_H_
