// The stream of a CUDA device on which a transport puts its work.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_QUEUE_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_QUEUE_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "device/cuda/cuda_device.h"
#include "device/device.h"

namespace sluice {

struct CudaQueue {
  int ordinal = 0;
  cudaStream_t stream = nullptr;
  CudaDevice* device = nullptr;  // outlives the transport

  // Puts later work of the stream behind the batches that filled what is to be sent, and behind
  // what they come after. Before each piece of a transport's work; returns the piece's number.
  absl::StatusOr<uint64_t> ComeAfterBatches() const { return device->HoldBackTransport(); }
  // Before it is told that the piece is on the stream: what is drained then comes after it.
  void HandedOut(uint64_t number) const { device->TransportHandedOut(number); }
};

// That of a device that a CUDA accelerator has opened. InvalidArgument for others, in the name of
// `transport`.
absl::StatusOr<CudaQueue> QueueOf(Device* device, const std::string& transport);

// Which GPU it is: equal for equal ones on one node, "00000000:3B:00.0".
absl::StatusOr<std::string> PciBusIdOf(int ordinal);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_QUEUE_H_
