// The calls that make, use and destroy streams.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_context.h"
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
  auto [state, lock] = LockState();
  const std::shared_ptr<Stream> made = MakeStream(state, CurrentDevice());
  made->is_blocking = (flags & cudaStreamNonBlocking) == 0;
  *stream = static_cast<cudaStream_t>(PointerTo(made->handle));
  return cudaSuccess;
}

// As CUDA loads lazily, at the first launch.
void LoadAtLaunch(State& state, const char* kernel, int device) {
  const bool is_new = state.devices[static_cast<size_t>(device)].kernels.insert(kernel).second;
  const bool is_busy = std::any_of(state.streams.begin(), state.streams.end(), [&](const auto& e) {
    return e.second->device == device && e.second->done < e.second->enqueued;
  });
  if (!is_new || !is_busy) return;
  AddMisuse(std::string("the first launch of ") + kernel +
            ", which was not loaded before, on device " + std::to_string(device) +
            ", which is not idle");
}

std::atomic<int64_t>& TheKernelsDone() {
  static std::atomic<int64_t> done = 0;
  return done;
}

// Without a name it counts as loaded.
cudaError_t LaunchKernel(const char* kernel_name, cudaStream_t handle, std::function<void()> kernel,
                         const std::vector<FakeCudaRange>& uses) {
  constexpr const char* kName = "cudaLaunchKernel";
  return WithStream(kName, handle, [&](State& state, Lock&, const auto& stream) {
    if (stream->device != CurrentDevice()) return cudaErrorInvalidResourceHandle;
    for (const FakeCudaRange& range : uses) {
      if (DeviceBytes(state, range, stream->device, kName) == nullptr) {
        return cudaErrorIllegalAddress;
      }
    }
    if (kernel_name != nullptr) LoadAtLaunch(state, kernel_name, stream->device);
    auto run = [kernel = std::move(kernel)] {
      kernel();
      ++TheKernelsDone();
    };
    Enqueue(state, stream, {.what = "a kernel", .run = std::move(run), .uses = uses});
    return DeviceError(state, stream->device);
  });
}

}  // namespace
}  // namespace fake_cuda

int64_t FakeCudaKernelsDone() { return fake_cuda::TheKernelsDone(); }

cudaError_t FakeCudaEnqueue(cudaStream_t stream, std::function<void()> kernel,
                            const std::vector<FakeCudaRange>& uses) {
  return FakeCudaLaunch(nullptr, stream, std::move(kernel), uses);
}

cudaError_t FakeCudaLaunch(const char* kernel, cudaStream_t stream, std::function<void()> body,
                           const std::vector<FakeCudaRange>& uses) {
  return fake_cuda::Call("cudaLaunchKernel", [&] {
    return fake_cuda::LaunchKernel(kernel, stream, std::move(body), uses);
  });
}

cudaError_t FakeCudaLoad(const char* kernel) {
  return fake_cuda::Call("cudaFuncGetAttributes", [&] {
    constexpr int kOldest = 90;
    auto [state, lock] = fake_cuda::LockState();
    if (state.config.compute_capability < kOldest) return cudaErrorNoKernelImageForDevice;
    state.devices[static_cast<size_t>(fake_cuda::CurrentDevice())].kernels.insert(kernel);
    return cudaSuccess;
  });
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
  const auto destroy = [](fake::State&, fake::Lock&, const auto& stream) {
    if (stream->is_null) return cudaErrorInvalidResourceHandle;
    Destroy(*stream);
    return cudaSuccess;
  };
  return fake::StreamCall(__func__, handle, destroy, fake::IfFailed::kDoIt);
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return fake::StreamCall(__func__, handle, [](fake::State& state, auto&, const auto& stream) {
    cudaError_t error = RefuseCapturing(*stream, cudaErrorStreamCaptureUnsupported);
    if (error == cudaSuccess) error = DeviceError(state, stream->device);
    if (error != cudaSuccess) return error;
    if (stream->done < stream->enqueued) return cudaErrorNotReady;
    SeenDone(*stream, stream->enqueued);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const auto synchronize = [](fake::State& state, fake::Lock& lock, const auto& stream) {
    fake::CountHostWait();
    const cudaError_t refused = RefuseCapturing(*stream, cudaErrorStreamCaptureUnsupported);
    if (refused != cudaSuccess) return refused;
    const uint64_t sequence = stream->enqueued;
    fake::WaitUntilDone(lock, {stream, sequence});
    SeenDone(*stream, sequence);
    return DeviceError(state, stream->device);
  };
  return fake::StreamCall(__func__, handle, synchronize, fake::IfFailed::kDoIt);
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return fake::StreamCall(__func__, handle, [device](auto&, auto&, const auto& stream) {
    if (device == nullptr) return cudaErrorInvalidValue;
    const cudaError_t refused = RefuseCapturing(*stream, cudaErrorStreamCaptureUnsupported);
    if (refused == cudaSuccess) *device = stream->device;
    return refused;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned int flags) {
  return fake::StreamCall(__func__, handle, [&](fake::State& state, auto&, const auto& stream) {
    if (flags != cudaEventWaitDefault) return cudaErrorInvalidValue;
    const cudaError_t refused = RefuseCapturing(*stream, cudaErrorStreamCaptureIsolation);
    return refused != cudaSuccess ? refused : fake::StreamWaitEvent(state, stream, event);
  });
}

}  // extern "C"
