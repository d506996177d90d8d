// The vendor's ways to copy many pieces at once, to compare with.
#ifndef SLUICE_BENCH_MICRO_CUDA_BATCHED_COPIES_H_
#define SLUICE_BENCH_MICRO_CUDA_BATCHED_COPIES_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace sluice {

// What is copied, in device memory on both sides; no two pieces overlap.
struct CopyPieces {
  std::vector<const void*> srcs;
  std::vector<void*> dsts;
  std::vector<size_t> bytes;
};

// Has its tables, and what else can be made beforehand.
class BatchedCopy {
 public:
  virtual ~BatchedCopy() = default;
  virtual const char* name() const = 0;
  virtual cudaError_t Start(cudaStream_t stream) = 0;
};

// Null where the toolkit has none. `pieces` must outlive the first.
std::unique_ptr<BatchedCopy> MakeMemcpyBatch(const CopyPieces& pieces);
std::unique_ptr<BatchedCopy> MakeCubBatch(const CopyPieces& pieces);

}  // namespace sluice

#endif  // SLUICE_BENCH_MICRO_CUDA_BATCHED_COPIES_H_
