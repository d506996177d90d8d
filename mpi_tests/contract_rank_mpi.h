// Runs this process's rank of a contract test to its end.
#ifndef SLUICE_MPI_TESTS_CONTRACT_RANK_MPI_H_
#define SLUICE_MPI_TESTS_CONTRACT_RANK_MPI_H_

#include <chrono>
#include <cstdio>

#include "sluice/mpi.h"
#include "transport/transport_contract.h"

namespace sluice {

// Carries out the script, and checks its end. A rank that is stuck would hold up all others in the
// next test, so it ends the program.
inline void RunToEnd(const ContractScript& script, ContractRank* rank) {
  if (!rank->Run(script, std::chrono::seconds(400))) {
    std::fprintf(stderr, "stuck: %s\n", rank->Position().c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  rank->CheckEnd();
}

}  // namespace sluice

#endif  // SLUICE_MPI_TESTS_CONTRACT_RANK_MPI_H_
