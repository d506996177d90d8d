// The contract of the transports for device memory over the fakes, each rank a process.
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "sluice/cuda.h"
#include "sluice/mpi.h"
#include "sluice/nccl.h"
#include "transport/cuda_contract.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

// A rank that is stuck would hold up all others in the next test, so it ends the program.
void Abort(const ContractRank& rank) {
  std::fprintf(stderr, "stuck: %s\n", rank.Position().c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void RunOwnRank(const ContractScript& script, int ordinal, std::shared_ptr<TransportMaker> maker) {
  absl::StatusOr<std::unique_ptr<Fabric>> fabric = MakeMpiFabric(MPI_COMM_WORLD);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  ContractRank rank(*std::move(fabric), CudaContractMemory(ordinal, std::move(maker)));
  script(rank);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (rank.Advance()) {
    if (std::chrono::steady_clock::now() > deadline) Abort(rank);
    std::this_thread::yield();
  }
  rank.CheckEnd();
  rank.DestroyTransports();
  MPI_Barrier(MPI_COMM_WORLD);  // nobody's memory goes while another rank may have it open
}

int Rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// All on one GPU, and on one each.
void RunOverIpc(const ContractScript& script) {
  RunOwnRank(script, 0, *MakeCudaIpcTransport(nullptr));
}
void RunOverIpcBetweenGpus(const ContractScript& script) {
  RunOwnRank(script, Rank(), *MakeCudaIpcTransport(nullptr));
}
void RunOverNccl(const ContractScript& script) {
  RunOwnRank(script, Rank(), *MakeNcclTransport(nullptr));
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FabricContract);
INSTANTIATE_TEST_SUITE_P(CudaIpc, TransportContract,
                         testing::Values(ContractWorld{"OneGpu", RunOverIpc},
                                         ContractWorld{"GpuEach", RunOverIpcBetweenGpus}),
                         ContractWorldName);
INSTANTIATE_TEST_SUITE_P(CudaIpc, GroupContract,
                         testing::Values(ContractWorld{"OneGpu", RunOverIpc},
                                         ContractWorld{"GpuEach", RunOverIpcBetweenGpus}),
                         ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Nccl, GroupContract,
                         testing::Values(ContractWorld{"GpuEach", RunOverNccl}), ContractWorldName);

}  // namespace
}  // namespace sluice
