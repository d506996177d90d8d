// A stream of our own, and its order with other streams.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_STREAM_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_STREAM_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_event.h"

namespace sluice {

// A stream of the device that is current when it is made, and in all calls.
class CudaStream {
 public:
  // The default stream's work does not hold back this stream. If kernels of several streams are
  // ready, those of an urgent one come first.
  enum class Urgency { kUsual, kUrgent };
  static absl::StatusOr<std::unique_ptr<CudaStream>> Create(Urgency urgency);
  // Waits for nothing: the runtime frees the stream when its work is done.
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  cudaStream_t get() const { return stream_; }

  // Puts later work of this stream behind what `other` holds now. Waits for nothing.
  absl::Status ComeAfter(CudaStream* other);
  // The same after the place that `event` marks.
  absl::Status ComeAfter(const UniqueCudaEvent& event);

  // False while it has work. An error says that it has none any more.
  bool IsIdle() const;

 private:
  explicit CudaStream(cudaStream_t stream) : stream_(stream) {}

  const cudaStream_t stream_;
  UniqueCudaEvent mark_;  // for those that come after this stream
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_STREAM_H_
