// What has to cross between nodes, counted element by element.
#ifndef SLUICE_TESTS_PLAN_CROSSINGS_H_
#define SLUICE_TESTS_PLAN_CROSSINGS_H_

#include <vector>

#include "plan/job.h"

namespace sluice::oracle {

// As bench/reshard/crossing_bounds.h says it.
struct LeastCrossings {
  double node_bytes = 0;
  std::vector<double> sent;      // by rank
  std::vector<double> received;  // by rank
};
LeastCrossings CountCrossings(const Job& job);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_CROSSINGS_H_
