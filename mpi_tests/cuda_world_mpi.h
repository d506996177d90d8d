// Sessions between GPUs, or on one, whose ranks are processes.
#ifndef SLUICE_MPI_TESTS_CUDA_WORLD_MPI_H_
#define SLUICE_MPI_TESTS_CUDA_WORLD_MPI_H_

#include <mpi.h>

#include <memory>
#include <string>

#include "cuda_gpus.h"
#include "gtest/gtest.h"
#include "session/world.h"
#include "session_mpi_rank.h"
#include "sluice/cuda.h"
#include "sluice/nccl.h"

namespace sluice::session_test {

// What carries buckets.
enum class Carrier { kMessages, kCudaIpc, kNccl };

inline std::string NameOf(Carrier carrier) {
  switch (carrier) {
    case Carrier::kMessages:
      return "Messages";
    case Carrier::kCudaIpc:
      return "CudaIpc";
    case Carrier::kNccl:
      return "Nccl";
  }
  return "";
}

// Runs `body` as this process's rank. Skips the test where there is no GPU, and for NCCL where
// ranks would have to share one and may not.
inline void RunOwnRankOn(Carrier carrier, const RankBody& body) {
  if (Gpus() == 0) GTEST_SKIP() << "no GPU";
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (carrier == Carrier::kNccl && !HasGpusFor(size)) {
    GTEST_SKIP() << Gpus() << " GPUs for " << size << " ranks";
  }
  Rank self = MpiRank(MPI_COMM_WORLD);
  ASSERT_NE(self.fabric, nullptr);
  const auto accelerator =
      MakeCudaAccelerator({.ordinal = HasGpusFor(size) ? GpuOf(rank) : rank % Gpus()});
  ASSERT_TRUE(accelerator.ok()) << accelerator.status();
  self.accelerator = *accelerator;
  self.direct = false;
  if (carrier != Carrier::kMessages) {
    const auto transport = carrier == Carrier::kNccl ? MakeNcclTransport(*accelerator)
                                                     : MakeCudaIpcTransport(*accelerator);
    ASSERT_TRUE(transport.ok()) << transport.status();
    self.transport = *transport;
  }
  body(self);
  self.meet();  // nobody's memory goes while another rank may have it open
}

}  // namespace sluice::session_test

#endif  // SLUICE_MPI_TESTS_CUDA_WORLD_MPI_H_
