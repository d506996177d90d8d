// What a benchmark run has to move: a list of cases, whatever they were read or made from.
//
// Nothing here knows MPI, sessions or memory.
#ifndef SLUICE_BENCH_WORKLOAD_WORKLOAD_H_
#define SLUICE_BENCH_WORKLOAD_WORKLOAD_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sluice/transfer.h"

namespace sluice::bench {

// One redistribution, of one tensor or of many. If `status` is not OK the case was described
// wrongly: `status` says how, and `spec` is empty.
struct Case {
  std::string id;
  absl::Status status;
  TransferSpec spec;
};

struct Workload {
  std::vector<Case> cases;
  std::vector<std::string> notes;  // what was ignored, for the reader of the results
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_WORKLOAD_H_
