// In what order, and by whom, the contributions to a reduction are added up.
//
// The order of addition is that of the contributions, whoever adds. So what a node holds can be
// added up before it crosses only where it comes first, or once the sum of what comes before it is
// there: the sum passes from node to node, and each adds what it has.
#ifndef SLUICE_SRC_PLAN_GATHERING_H_
#define SLUICE_SRC_PLAN_GATHERING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace sluice {

// A stretch of the contributions, and who adds them to the sum of all before.
struct GatherStep {
  int32_t first = 0;  // number of its first contribution; its last is the one before the next step
  int adder = -1;     // rank; passes its sum to the next step's adder. The last one is the owner.

  friend bool operator==(const GatherStep&, const GatherStep&) = default;
};
using GatherSteps = absl::InlinedVector<GatherStep, 2>;

// One step, by the owner.
GatherSteps GatherDirectly(int owner);

// Where `contributors`, in the order of addition, has stretches of several ranks of one node, a
// step for each of those before the owner's own. It takes along what comes before its stretch and
// is in none, and its adder is one of the stretch's ranks, another one for each owner of a node.
// `owner` is a contributor, or there is one step.
GatherSteps GatherByNode(int owner, absl::Span<const int> contributors,
                         absl::Span<const int> node_of_rank);

// A stretch of contributors of one node, one of whom may be the owner.
struct GatherEnd {
  int32_t first = 0;  // numbers [first, end) of their contributions
  int32_t end = 0;
  int node = -1;
  int64_t crossings = 0;  // of contributions and sums, between nodes, by GatherByNode
  int32_t steps = 1;      // of that

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
