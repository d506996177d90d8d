// The contract of CUDA IPC where each process sees one GPU, a different one, and knows it as its
// first: as under Slurm's --gpus-per-task and Ray. Over the fake.
#include <memory>

#include "cuda_rank_mpi.h"
#include "fakes/fake_cuda.h"
#include "gtest/gtest.h"
#include "sluice/cuda.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

void RunOnOnlyGpu(const ContractScript& script) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  FakeCudaConfigure({.devices = size, .visible = {rank}});
  RunOwnRank(script, 0, *MakeCudaIpcTransport(nullptr));
}

INSTANTIATE_TEST_SUITE_P(CudaVisible, TransportContract,
                         testing::Values(ContractWorld{"OnlyGpu", RunOnOnlyGpu}),
                         ContractWorldName);
INSTANTIATE_TEST_SUITE_P(CudaVisible, PartContract,
                         testing::Values(ContractWorld{"OnlyGpu", RunOnOnlyGpu}),
                         ContractWorldName);
INSTANTIATE_TEST_SUITE_P(CudaVisible, GroupContract,
                         testing::Values(ContractWorld{"OnlyGpu", RunOnOnlyGpu}),
                         ContractWorldName);

}  // namespace
}  // namespace sluice
