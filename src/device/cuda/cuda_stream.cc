// Makes streams, and marks places in them.
#include "device/cuda/cuda_stream.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/cuda_event.h"

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
  absl::StatusOr<UniqueCudaEvent> mark = UniqueCudaEvent::Create();
  if (!mark.ok()) return mark.status();
  made->mark_ = *std::move(mark);
  return made;
}

CudaStream::~CudaStream() {
  (void)cudaStreamDestroy(stream_);
  (void)cudaGetLastError();
}

// A wait is for the place that the event marks at the time of the call: so one event is enough.
absl::Status CudaStream::ComeAfter(CudaStream* other) {
  if (absl::Status status = other->mark_.Record(other->stream_); !status.ok()) return status;
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
