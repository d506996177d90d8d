// The calls that make, use and destroy streams.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_event.h"
#include "fakes/fake_cuda_memory.h"
#include "fakes/fake_cuda_state.h"
#include "fakes/fake_cuda_stream.h"

namespace sluice {
namespace fake_cuda {
namespace {

cudaError_t CreateStream(cudaStream_t* stream, unsigned flags) {
  if (stream == nullptr || (flags & ~unsigned{cudaStreamNonBlocking}) != 0) {
    return cudaErrorInvalidValue;
  }
  State& state = TheState();
  const Lock lock(state.mutex);
  const std::shared_ptr<Stream> made = MakeStream(state, CurrentDevice());
  made->is_blocking = (flags & cudaStreamNonBlocking) == 0;
  *stream = static_cast<cudaStream_t>(PointerTo(made->handle));
  return cudaSuccess;
}

// Runs `body(state, lock, stream)` if there is such a stream.
template <class Body>
cudaError_t WithStream(const char* function, cudaStream_t handle, const Body& body) {
  State& state = TheState();
  Lock lock(state.mutex);
  const std::shared_ptr<Stream> stream = FindStream(state, handle, function);
  return stream == nullptr ? cudaErrorInvalidResourceHandle : body(state, lock, stream);
}

cudaError_t LaunchKernel(cudaStream_t handle, std::function<void()> kernel,
                         const std::vector<FakeCudaRange>& uses) {
  constexpr const char* kName = "cudaLaunchKernel";
  return WithStream(kName, handle, [&](State& state, Lock&, const auto& stream) {
    if (stream->device != CurrentDevice()) return cudaErrorInvalidResourceHandle;
    for (const FakeCudaRange& range : uses) {
      if (DeviceBytes(state, range, stream->device, kName) == nullptr) {
        return cudaErrorIllegalAddress;
      }
    }
    Enqueue(state, stream, {.what = "a kernel", .run = std::move(kernel), .uses = uses});
    return DeviceError(state, stream->device);
  });
}

}  // namespace
}  // namespace fake_cuda

cudaError_t FakeCudaEnqueue(cudaStream_t stream, std::function<void()> kernel,
                            const std::vector<FakeCudaRange>& uses) {
  return fake_cuda::Call("cudaLaunchKernel",
                         [&] { return fake_cuda::LaunchKernel(stream, std::move(kernel), uses); });
}

}  // namespace sluice

namespace fake = sluice::fake_cuda;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream, unsigned int flags) {
  return fake::Call(__func__, [&] { return fake::CreateStream(pStream, flags); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* pStream, unsigned int flags, int) {
  return fake::Call(__func__, [&] { return fake::CreateStream(pStream, flags); });
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const char* const name = __func__;
  return fake::Call(name, fake::IfFailed::kDoIt, [&] {
    if (handle == nullptr) return cudaErrorInvalidResourceHandle;
    return fake::WithStream(name, handle, [&](fake::State&, fake::Lock&, const auto& stream) {
      if (stream->is_null) return cudaErrorInvalidResourceHandle;
      Destroy(*stream);
      return cudaSuccess;
    });
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const char* const name = __func__;
  return fake::Call(name, [&] {
    return fake::WithStream(name, handle, [](fake::State& state, fake::Lock&, const auto& stream) {
      const cudaError_t error = DeviceError(state, stream->device);
      if (error != cudaSuccess) return error;
      if (stream->done < stream->enqueued) return cudaErrorNotReady;
      SeenDone(*stream, stream->enqueued);
      return cudaSuccess;
    });
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const char* const name = __func__;
  return fake::Call(name, fake::IfFailed::kDoIt, [&] {
    fake::CountHostWait();
    return fake::WithStream(name, handle,
                            [](fake::State& state, fake::Lock& lock, const auto& stream) {
                              const uint64_t sequence = stream->enqueued;
                              fake::WaitUntilDone(lock, {stream, sequence});
                              SeenDone(*stream, sequence);
                              return DeviceError(state, stream->device);
                            });
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  const char* const name = __func__;
  return fake::Call(name, [&] {
    if (device == nullptr) return cudaErrorInvalidValue;
    return fake::WithStream(name, handle, [&](fake::State&, fake::Lock&, const auto& stream) {
      *device = stream->device;
      return cudaSuccess;
    });
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned int flags) {
  const char* const name = __func__;
  return fake::Call(name, [&] {
    if (flags != cudaEventWaitDefault) return cudaErrorInvalidValue;
    return fake::WithStream(name, handle, [&](fake::State& state, fake::Lock&, const auto& stream) {
      return fake::StreamWaitEvent(state, stream, event);
    });
  });
}

}  // extern "C"
