// A GPU's memory as a device: copies, casts, reductions and normalizations by kernels, on a stream
// of its own.
#ifndef SLUICE_SRC_DEVICE_CUDA_DEVICE_H_
#define SLUICE_SRC_DEVICE_CUDA_DEVICE_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "device/device.h"

namespace sluice {

struct CudaDeviceOptions {
  int ordinal = 0;            // of this process, from 0
  bool record_spans = false;  // what TakeSpans gives out
  // Pinned memory through which copies between the GPU and other host memory go.
  int64_t bounce_bytes = int64_t{8} << 20;
};

// Staging is pinned host memory, buffers are the GPU's memory. Copies may have any mixture of host,
// pinned and GPU memory as their sides. Nothing waits for the GPU but creation and destruction, and
// the calling thread's current device stays what it is. Not thread safe, but no call is bound to a
// thread.
//
// `then` of a batch is recorded by the time that its cookie is given out.
class CudaDevice : public Device {
 public:
  // ResourceExhausted, or what the runtime says.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(const CudaDeviceOptions& options);

  int ordinal() const { return ordinal_; }

  // Where the work of batches goes, in their order: for transports that work in stream order.
  cudaStream_t stream() const { return stream_; }

 protected:
  static constexpr DeviceTraits kTraits = {DeviceKind::kCudaHost, DeviceKind::kCuda};
  CudaDevice(int ordinal, cudaStream_t stream)
      : Device(kTraits), ordinal_(ordinal), stream_(stream) {}

 private:
  const int ordinal_;
  const cudaStream_t stream_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_DEVICE_H_
