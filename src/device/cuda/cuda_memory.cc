// Pins mapped pages rather than asking CUDA for pinned ones: so they are near the right CPUs.
#include "device/cuda_memory.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "device/cuda_error.h"
#include "device/device.h"
#include "device/host_memory.h"

namespace sluice {
namespace {

// Errors are not for whoever frees: those of earlier work, or of a runtime that is ending.
void Unpin(std::byte* data, size_t bytes) {
  (void)cudaHostUnregister(data);
  (void)cudaGetLastError();
  UnmapHostMemory(data, bytes);
}

void FreeOnGpu(std::byte* data, size_t) {
  (void)cudaFree(data);
  (void)cudaGetLastError();
}

}  // namespace

absl::StatusOr<DeviceMemory> AllocatePinned(size_t bytes, absl::string_view what) {
  absl::StatusOr<DeviceMemory> memory = MapHostMemory(bytes, what);
  if (!memory.ok() || bytes == 0) return memory;
  const cudaError_t error = cudaHostRegister(memory->data(), bytes, cudaHostRegisterPortable);
  if (error != cudaSuccess) {
    return CudaStatus(error, absl::StrCat("pinning ", bytes, " bytes of ", what,
                                          " (limited by ulimit -l, too): cudaHostRegister"));
  }
  std::byte* const data = memory->data();
  memory->Abandon();
  return DeviceMemory(data, bytes, Unpin);
}

absl::StatusOr<DeviceMemory> AllocateOnGpu(int ordinal, size_t bytes, absl::string_view what) {
  if (bytes == 0) return DeviceMemory();
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaSuccess) {
    return DeviceMemory(static_cast<std::byte*>(data), bytes, FreeOnGpu);
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
  return absl::Status(status.code(),
                      absl::StrCat("cannot allocate ", bytes, " bytes of ", what,
                                   " on cuda:", ordinal, left, ": ", status.message()));
}

}  // namespace sluice
