// The fluid network by its definition: in small steps of time everything is computed anew.
#ifndef SLUICE_TESTS_SIM_FLUID_ORACLE_H_
#define SLUICE_TESTS_SIM_FLUID_ORACLE_H_

#include <vector>

namespace sluice::sim {

// Bytes that go from one rank to another, from a time on.
struct OracleFlow {
  int src = 0;
  int dst = 0;
  double bytes = 0;
  double begin_s = 0;
};

// When each of the flows ends, in seconds. Every rank has one port of `rate` bytes per second each
// way. A flow gets the smaller of its ports' equal shares.
std::vector<double> EndsByDefinition(const std::vector<OracleFlow>& flows, double rate);

}  // namespace sluice::sim

#endif  // SLUICE_TESTS_SIM_FLUID_ORACLE_H_
