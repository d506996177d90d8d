// This process as a rank of a contract test whose buffers are in device memory.
#ifndef SLUICE_MPI_TESTS_CUDA_RANK_MPI_H_
#define SLUICE_MPI_TESTS_CUDA_RANK_MPI_H_

#include <memory>
#include <utility>

#include "contract_rank_mpi.h"
#include "gtest/gtest.h"
#include "patient_fabric.h"
#include "sluice/mpi.h"
#include "transport/cuda_contract.h"
#include "transport/transport_contract.h"

namespace sluice {

inline void RunOwnRank(const ContractScript& script, int ordinal,
                       std::shared_ptr<TransportMaker> maker) {
  absl::StatusOr<std::unique_ptr<Fabric>> fabric = PatientMpiFabric(MPI_COMM_WORLD);
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  ContractRank rank(*std::move(fabric), CudaContractMemory(ordinal, std::move(maker)));
  RunToEnd(script, &rank);
  rank.DestroyTransports();
  MPI_Barrier(MPI_COMM_WORLD);  // nobody's memory goes while another rank may have it open
}

}  // namespace sluice

#endif  // SLUICE_MPI_TESTS_CUDA_RANK_MPI_H_
