// The contract of fabrics and transports over MPI, each rank a process.
#include <utility>

#include "contract_rank_mpi.h"
#include "gtest/gtest.h"
#include "patient_fabric.h"
#include "sluice/mpi.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

void RunOwnRank(const ContractScript& script) {
  auto fabric = PatientMpiFabric(MPI_COMM_WORLD).value();
  ContractRank rank(std::move(fabric));
  RunToEnd(script, &rank);
}

INSTANTIATE_TEST_SUITE_P(Mpi, TransportContract,
                         testing::Values(ContractWorld{"World", RunOwnRank}), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Mpi, PartContract, testing::Values(ContractWorld{"World", RunOwnRank}),
                         ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Mpi, GroupContract, testing::Values(ContractWorld{"World", RunOwnRank}),
                         ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Mpi, FabricContract, testing::Values(ContractWorld{"World", RunOwnRank}),
                         ContractWorldName);

}  // namespace
}  // namespace sluice
