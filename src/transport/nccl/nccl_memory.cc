// Memory by NCCL's own allocator.
#include "transport/nccl/nccl_memory.h"

#include <nccl.h>

#include "device/cuda/cuda_current.h"
#include "device/cuda/cuda_queue.h"
#include "tensor/error_text.h"
#include "transport/nccl/nccl_error.h"

namespace sluice {
namespace {

// Errors are not for whoever frees.
void FreeNcclMemory(std::byte* data, size_t, int ordinal) {
  const CurrentCudaDevice current(ordinal);
  static_cast<void>(ncclMemFree(data));
}

}  // namespace

absl::StatusOr<DeviceMemory> AllocateNcclMemory(Device* device, size_t bytes) {
  if (bytes == 0) return DeviceMemory();
  const absl::StatusOr<CudaQueue> queue = QueueOf(device, "nccl");
  if (!queue.ok()) return queue.status();
  const CurrentCudaDevice current(queue->ordinal);  // where NCCL allocates
  if (!current.status().ok()) return current.status();
  void* data = nullptr;
  const ncclResult_t result = ncclMemAlloc(&data, bytes);
  if (result != ncclSuccess) {
    const absl::Status status =
        NcclError(result, "ncclMemAlloc", nullptr, ErrorText("GPU ", queue->ordinal));
    return MakeError(absl::StatusCode::kResourceExhausted, "cannot allocate ", bytes,
                     " bytes: ", status);
  }
  return DeviceMemory(static_cast<std::byte*>(data), bytes, FreeNcclMemory, queue->ordinal);
}

}  // namespace sluice
