// The GPU of each rank, where every rank is a process of one node.
#ifndef SLUICE_MPI_TESTS_CUDA_GPUS_H_
#define SLUICE_MPI_TESTS_CUDA_GPUS_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>

namespace sluice {

inline int Gpus() {
  int gpus = 0;
  return cudaGetDeviceCount(&gpus) == cudaSuccess ? gpus : 0;
}

// How many ranks of NCCL may share a GPU: SLUICE_TEST_RANKS_PER_GPU, or one.
inline int RanksPerGpu() {
  const char* const text = std::getenv("SLUICE_TEST_RANKS_PER_GPU");
  return std::max(1, text == nullptr ? 1 : std::atoi(text));
}

// Whether `size` ranks find a GPU each, or one that they may share.
inline bool HasGpusFor(int size) { return Gpus() * RanksPerGpu() >= size; }

// The one of `rank`, where HasGpusFor(size).
inline int GpuOf(int rank) { return rank / RanksPerGpu(); }

}  // namespace sluice

#endif  // SLUICE_MPI_TESTS_CUDA_GPUS_H_
