// Makes streams, and marks places in them.
#include "device/cuda/cuda_stream.h"

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/cuda_event.h"
#include "tensor/error_text.h"

namespace sluice {

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create(Urgency urgency) {
  int least = 0;
  int greatest = 0;
  SLUICE_CUDA_RETURN_IF_ERROR(cudaDeviceGetStreamPriorityRange, (&least, &greatest));
  const int priority = urgency == Urgency::kUrgent ? greatest : least;
  cudaStream_t stream = nullptr;
  SLUICE_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithPriority,
                              (&stream, cudaStreamNonBlocking, priority));
  auto made = absl::WrapUnique(new CudaStream(stream));
  SLUICE_ASSIGN_OR_RETURN(made->mark_, UniqueCudaEvent::Create());
  return made;
}

CudaStream::~CudaStream() {
  (void)cudaStreamDestroy(stream_);
  (void)cudaGetLastError();
}

// A wait is for the place that the event marks at the time of the call: so one event is enough.
absl::Status CudaStream::ComeAfter(CudaStream* other) {
  SLUICE_RETURN_IF_ERROR(other->mark_.Record(other->stream_));
  return ComeAfter(other->mark_);
}

absl::Status CudaStream::ComeAfter(const UniqueCudaEvent& event) {
  return CudaStatus(cudaStreamWaitEvent(stream_, event.get(), 0), "cudaStreamWaitEvent");
}

bool CudaStream::IsIdle() const {
  const bool idle = cudaStreamQuery(stream_) != cudaErrorNotReady;
  (void)cudaGetLastError();
  return idle;
}

}  // namespace sluice
