// Pins mapped pages rather than asking CUDA for pinned ones: so they are near the GPU.
#include "device/cuda/cuda_memory.h"

#include <cuda_runtime_api.h>

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "device/cuda/cuda_current.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/cuda_given_up.h"
#include "device/device.h"
#include "device/host_memory.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// Errors are not for whoever frees: those of earlier work, or of a runtime that is ending. That
// thread may have another device, or none.
void Unpin(std::byte* data, size_t bytes, int ordinal) {
  const CurrentCudaDevice current(ordinal);
  if (KeptByGivenUpLanes(data, bytes, ordinal, Unpin)) return;
  (void)cudaHostUnregister(data);
  (void)cudaGetLastError();
  UnmapHostMemory(data, bytes);
}

void FreeOnGpu(std::byte* data, size_t bytes, int ordinal) {
  const CurrentCudaDevice current(ordinal);
  if (KeptByGivenUpLanes(data, bytes, ordinal, FreeOnGpu)) return;
  (void)cudaFree(data);
  (void)cudaGetLastError();
}

}  // namespace

absl::StatusOr<DeviceMemory> AllocatePinned(int ordinal, size_t bytes, absl::string_view what) {
  // The link between sockets lets through less than a GPU takes.
  int node = kNearProcess;  // which is also what CUDA says of a GPU near no node
  SLUICE_CUDA_RETURN_IF_ERROR(cudaDeviceGetAttribute, (&node, cudaDevAttrHostNumaId, ordinal));
  absl::StatusOr<DeviceMemory> memory = MapHostMemory(bytes, what, node);
  if (!memory.ok() || bytes == 0) return memory;
  const cudaError_t error = cudaHostRegister(memory->data(), bytes, cudaHostRegisterPortable);
  if (error != cudaSuccess) {
    return CudaStatus(error,
                      absl::StrCat("pinning ", bytes, " bytes of ", what, ": cudaHostRegister"));
  }
  std::byte* const data = memory->data();
  memory->Abandon();
  return DeviceMemory(data, bytes, Unpin, ordinal);
}

absl::StatusOr<DeviceMemory> AllocateOnGpu(int ordinal, size_t bytes, absl::string_view what) {
  if (bytes == 0) return DeviceMemory();
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaSuccess) {
    return DeviceMemory(static_cast<std::byte*>(data), bytes, FreeOnGpu, ordinal);
  }
  const absl::Status status = CudaStatus(error, "cudaMalloc");
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  std::string left;
  if (cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess) {
    left = absl::StrCat(", of which ", free_bytes, " bytes of ", total_bytes, " are free");
  } else {
    (void)cudaGetLastError();
  }
  // CUDA calls a size that no GPU has an invalid value.
  const bool is_too_much = bytes > total_bytes && !left.empty();
  return MakeError(is_too_much ? absl::StatusCode::kResourceExhausted : status.code(),
                   "cannot allocate ", bytes, " bytes of ", what, " on cuda:", ordinal, left, ": ",
                   status);
}

}  // namespace sluice
