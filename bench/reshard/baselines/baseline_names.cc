// What flags may name, in programs with and without MPI.
#include "reshard/baselines/baseline.h"

namespace sluice::bench {

std::vector<std::string> BaselineNames() {
  return {"serial",         "isend",      "isend-packed", "alltoallw", "gather-broadcast",
          "mpi-collective", "memcpy-own", "bound",        "memcpy"};
}

}  // namespace sluice::bench
