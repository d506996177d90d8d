// Copies between strided stretches of device memory, of which each side may have rows of its own.
#ifndef SLUICE_SRC_TRANSPORT_CUDA_IPC_CUDA_IPC_PULL_H_
#define SLUICE_SRC_TRANSPORT_CUDA_IPC_CUDA_IPC_PULL_H_

#include <cstddef>

#include "absl/status/status.h"
#include "device/cuda/cuda_queue.h"

namespace sluice {

// As in TransportOp: 0 rows are one stretch.
struct PullRows {
  size_t row_bytes = 0;
  size_t stride_bytes = 0;
};

// From the first byte of `bytes` bytes to behind the last one.
size_t ExtentOf(size_t bytes, const PullRows& rows);

// Puts the copy of `bytes` bytes, whole rows of both sides, in the queue. The device must be
// current, and have `multiprocessors` of them.
absl::Status EnqueuePull(const CudaQueue& queue, int multiprocessors, const std::byte* src,
                         const PullRows& src_rows, std::byte* dst, const PullRows& dst_rows,
                         size_t bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_CUDA_IPC_CUDA_IPC_PULL_H_
