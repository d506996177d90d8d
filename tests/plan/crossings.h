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

// Bytes that come to each rank from others and stay, and bytes of contributions in all. Every
// element that somebody needs is reduced by a rank that contributes to it. There is an exception,
// if no such rank needs the element. A node then reduces it for itself, by a rank that needs it, if
// the node has all contributions of a replica. The node must also have as many targets as sources
// of the tensor. A rank that contributes reduces the element for the others only. Of the ranks that
// contribute, it is one that needs the element, unless less crosses to where nobody needs it.
struct Arrivals {
  std::vector<double> stay;  // by rank; where nothing is reduced
  double contributions = 0;  // or sums of them: a rank gives one or the other
  double results = 0;        // where all is reduced
};
Arrivals CountArrivals(const Job& job);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_CROSSINGS_H_
