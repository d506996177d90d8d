// A GPU's memory as a device: copies, casts, reductions and normalizations by kernels, on streams
// of its own.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_DEVICE_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_DEVICE_H_

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "device/cuda/cuda_kernels.h"
#include "device/device.h"

namespace sluice {

struct CudaDeviceOptions {
  int ordinal = 0;            // of this process, from 0
  bool record_spans = false;  // what TakeSpans gives out
  // Pinned memory through which copies between the GPU and other host memory go.
  int64_t bounce_bytes = int64_t{8} << 20;
  // How long the destructor waits for streams. They may wait for a process that has died.
  std::chrono::milliseconds farewell = std::chrono::seconds(4);
};

// Staging is pinned host memory, buffers are the GPU's memory. Copies may have any mixture of host,
// pinned and GPU memory as their sides. Nothing waits for the GPU but creation and destruction, and
// the calling thread's current device stays what it is. Not thread safe, but no call is bound to a
// thread. Work that the streams have not come to at the end of the farewell is given up. Memory
// that this device gave out is then freed when the GPU has got past it, as a later device looks.
//
// `then` of a batch is recorded by the time that its cookie is given out.
class CudaDevice : public Device {
 public:
  // ResourceExhausted; FailedPrecondition if the kernels were not built for this GPU; or what the
  // runtime says.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(const CudaDeviceOptions& options);

  int ordinal() const { return ordinal_; }

  // For transports that work in stream order: the stream that they put their work on. It comes
  // after all batches that fill what they are given, if they call HoldBackTransport before each
  // piece of work, which returns its number. Before they tell that a piece is on the stream they
  // call TransportHandedOut. Batches that are started later come after the piece, and after all
  // pieces before it.
  cudaStream_t transport_stream() const { return transport_stream_; }
  virtual absl::StatusOr<uint64_t> HoldBackTransport() = 0;
  virtual void TransportHandedOut(uint64_t number) = 0;

  // Batches of kAny and kFill go to one stream, those of kDrain to another. For tests and
  // benchmarks.
  virtual cudaStream_t fill_stream() const = 0;
  virtual cudaStream_t drain_stream() const = 0;

 protected:
  static constexpr DeviceTraits kTraits = {.staging = DeviceKind::kCudaHost,
                                           .buffers = DeviceKind::kCuda,
                                           .batch_items = kPiecesOfLaunch,
                                           .batch_small_copies = LaunchRoom<CudaSmallCopy>::kMany,
                                           .small_copy_bytes = kSmallCopyBytes};
  CudaDevice(int ordinal, cudaStream_t transport_stream)
      : Device(kTraits), ordinal_(ordinal), transport_stream_(transport_stream) {}

 private:
  const int ordinal_;
  const cudaStream_t transport_stream_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_DEVICE_H_
