// The contract of the transports for device memory, each rank a process: over the fakes, and on
// GPUs where there are as many as a world takes.
#include <cuda_runtime_api.h>

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

int Devices() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

void RunOnOneGpu(const ContractScript& script) {
  if (Devices() == 0) GTEST_SKIP() << "no GPU";
  RunOwnRank(script, 0, *MakeCudaIpcTransport(nullptr));
}

void RunOnGpuEach(const ContractScript& script,
                  const absl::StatusOr<std::shared_ptr<TransportMaker>>& maker) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (Devices() < size) GTEST_SKIP() << Devices() << " GPUs for " << size << " ranks";
  RunOwnRank(script, rank, *maker);
}
void RunOverIpc(const ContractScript& script) {
  RunOnGpuEach(script, MakeCudaIpcTransport(nullptr));
}
void RunOverNccl(const ContractScript& script) { RunOnGpuEach(script, MakeNcclTransport(nullptr)); }

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FabricContract);
INSTANTIATE_TEST_SUITE_P(CudaIpc, TransportContract,
                         testing::Values(ContractWorld{"OneGpu", RunOnOneGpu},
                                         ContractWorld{"GpuEach", RunOverIpc}),
                         ContractWorldName);
INSTANTIATE_TEST_SUITE_P(CudaIpc, GroupContract,
                         testing::Values(ContractWorld{"OneGpu", RunOnOneGpu},
                                         ContractWorld{"GpuEach", RunOverIpc}),
                         ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Nccl, GroupContract,
                         testing::Values(ContractWorld{"GpuEach", RunOverNccl}), ContractWorldName);

}  // namespace
}  // namespace sluice
