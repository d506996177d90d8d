// The contract of fabrics and transports over MPI, each rank a process.
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "sluice/mpi.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

// A rank that is stuck would hold up all others in the next test, so it ends the program.
void Abort(const ContractRank& rank) {
  std::fprintf(stderr, "stuck: %s\n", rank.Position().c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void RunOwnRank(const ContractScript& script) {
  absl::StatusOr<std::unique_ptr<Fabric>> fabric = MakeMpiFabric(MPI_COMM_WORLD);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  ContractRank rank(*std::move(fabric));
  script(rank);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (rank.Advance()) {
    if (std::chrono::steady_clock::now() > deadline) Abort(rank);
    std::this_thread::yield();
  }
  rank.CheckEnd();
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
