// The contract of the transports for device memory, each rank a process: over the fakes, and on
// GPUs where there are as many as a world takes.
#include <memory>

#include "cuda_gpus.h"
#include "cuda_rank_mpi.h"
#include "gtest/gtest.h"
#include "sluice/cuda.h"
#include "sluice/mpi.h"
#include "sluice/nccl.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

void RunOnOneGpu(const ContractScript& script) {
  if (Gpus() == 0) GTEST_SKIP() << "no GPU";
  RunOwnRank(script, 0, *MakeCudaIpcTransport(nullptr));
}

void RunOnGpuEach(const ContractScript& script,
                  const absl::StatusOr<std::shared_ptr<TransportMaker>>& maker) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!HasGpusFor(size)) GTEST_SKIP() << Gpus() << " GPUs for " << size << " ranks";
  RunOwnRank(script, GpuOf(rank), *maker);
}
void RunOverIpc(const ContractScript& script) {
  RunOnGpuEach(script, MakeCudaIpcTransport(nullptr));
}
void RunOverNccl(const ContractScript& script) { RunOnGpuEach(script, MakeNcclTransport(nullptr)); }

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
