// Records when a stream was busy with batches, by timed events.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_SPANS_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_SPANS_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_event.h"
#include "device/device.h"

namespace sluice {

// Records spans of a stream, one after the other. Spans that nobody takes in time are lost.
class CudaSpans {
 public:
  // Waits once for the stream, to learn what its clock says. Its device is current in all calls.
  static absl::StatusOr<std::unique_ptr<CudaSpans>> Create(cudaStream_t stream);

  absl::Status Begin(uint64_t cookie);
  absl::Status End();

  // Adds those that have ended, in order.
  absl::Status Take(std::vector<DeviceSpan>* spans);

  static constexpr size_t kMaxOpen = 128;

 private:
  struct Open {
    UniqueCudaEvent begin;
    UniqueCudaEvent end;
    uint64_t cookie = 0;
  };

  explicit CudaSpans(cudaStream_t stream) : stream_(stream) {}
  absl::StatusOr<int64_t> TimeOf(const UniqueCudaEvent& event) const;

  const cudaStream_t stream_;
  UniqueCudaEvent reference_;  // passed at reference_ns_
  int64_t reference_ns_ = 0;
  std::array<Open, kMaxOpen> ring_;
  size_t first_ = 0;
  size_t count_ = 0;
  bool recording_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_SPANS_H_
