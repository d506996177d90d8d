// Gives transports the stream of a session's device.
#include "device/cuda/cuda_queue.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "device/cuda/cuda_error.h"

namespace sluice {

absl::StatusOr<CudaQueue> QueueOf(Device* device, const std::string& transport) {
  auto* const cuda = dynamic_cast<CudaDevice*>(device);
  if (cuda != nullptr) return CudaQueue{cuda->ordinal(), cuda->transport_stream(), cuda};
  return absl::InvalidArgumentError(
      absl::StrCat(transport, " carries what a CUDA device has, and the session's is none"));
}

absl::StatusOr<std::string> PciBusIdOf(int ordinal) {
  std::array<char, 32> id{};
  const cudaError_t error = cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), ordinal);
  if (error != cudaSuccess) {
    return CudaStatus(error, "cudaDeviceGetPCIBusId", absl::StrCat("GPU ", ordinal));
  }
  return std::string(id.data());
}

}  // namespace sluice
