// Captures that record nothing: what a captured stream gets is dropped. What they forbid is real.
#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_context.h"
#include "fakes/fake_cuda_state.h"
#include "fakes/fake_cuda_stream.h"

namespace sluice::fake_cuda {
namespace {

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

// Calls that a graph cannot hold, and that may wait for what it holds.
constexpr std::array<std::string_view, 13> kUnsafe = {
    "cudaMalloc",
    "cudaFree",
    "cudaHostRegister",
    "cudaHostUnregister",
    "cudaMemcpy",
    "cudaEventQuery",
    "cudaEventSynchronize",
    "cudaStreamQuery",
    "cudaStreamSynchronize",
    "cudaIpcGetMemHandle",
    "cudaIpcOpenMemHandle",
    "cudaIpcCloseMemHandle",
    "cudaDeviceEnablePeerAccess",
};

// Whether the capture keeps this thread from unsafe calls.
bool Prohibits(const Capture& capture) {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return false;
  if (capture.thread == std::this_thread::get_id()) {
    return capture.mode != cudaStreamCaptureModeRelaxed;
  }
  return thread_mode == cudaStreamCaptureModeGlobal && capture.mode == cudaStreamCaptureModeGlobal;
}

cudaError_t Begin(State& state, Stream& stream, cudaStreamCaptureMode mode) {
  if (stream.is_null) return cudaErrorStreamCaptureUnsupported;
  if (stream.capture != nullptr) return cudaErrorIllegalState;
  stream.capture = std::make_unique<Capture>(Capture{mode, std::this_thread::get_id(), true});
  ++state.captures;
  return cudaSuccess;
}

cudaError_t End(State& state, Stream& stream, cudaGraph_t* graph) {
  if (graph == nullptr || stream.capture == nullptr) return cudaErrorInvalidValue;
  const Capture& capture = *stream.capture;
  if (capture.mode != cudaStreamCaptureModeRelaxed &&
      capture.thread != std::this_thread::get_id()) {
    return cudaErrorStreamCaptureWrongThread;
  }
  const bool is_valid = capture.is_valid;
  *graph = is_valid ? static_cast<cudaGraph_t>(PointerTo(NewHandle(state))) : nullptr;
  stream.capture.reset();
  --state.captures;
  return is_valid ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
}

cudaError_t IsCapturing(const State& state, const Stream& stream, cudaStreamCaptureStatus* status) {
  if (status == nullptr) return cudaErrorInvalidValue;
  *status = cudaStreamCaptureStatusNone;
  if (stream.capture != nullptr) {
    *status = stream.capture->is_valid ? cudaStreamCaptureStatusActive
                                       : cudaStreamCaptureStatusInvalidated;
  }
  // Work on the null stream would wait for what the others capture.
  const bool is_implicit =
      stream.is_null && std::any_of(state.streams.begin(), state.streams.end(), [&](const auto& e) {
        const Stream& other = *e.second;
        return other.capture != nullptr && other.is_blocking && other.device == stream.device;
      });
  return is_implicit ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}

}  // namespace

cudaError_t CheckCaptures(State& state, std::string_view function) {
  if (state.captures == 0 || std::find(kUnsafe.begin(), kUnsafe.end(), function) == kUnsafe.end()) {
    return cudaSuccess;
  }
  bool is_prohibited = false;
  for (const auto& [handle, stream] : state.streams) {
    if (stream->capture == nullptr || !Prohibits(*stream->capture)) continue;
    stream->capture->is_valid = false;
    is_prohibited = true;
  }
  return is_prohibited ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t CheckUnsafeCall() {
  auto [state, lock] = LockState();
  return CheckCaptures(state, kUnsafe.front());
}

cudaError_t RefuseCapturing(Stream& stream, cudaError_t error) {
  if (stream.capture == nullptr) return cudaSuccess;
  stream.capture->is_valid = false;
  return error;
}

cudaError_t ExchangeCaptureMode(cudaStreamCaptureMode* mode) {
  if (mode == nullptr || *mode < cudaStreamCaptureModeGlobal ||
      *mode > cudaStreamCaptureModeRelaxed) {
    return cudaErrorInvalidValue;
  }
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}

}  // namespace sluice::fake_cuda

namespace fake = sluice::fake_cuda;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  return fake::StreamCall(__func__, stream, [mode](fake::State& state, auto&, const auto& found) {
    return fake::Begin(state, *found, mode);
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* pGraph) {
  return fake::StreamCall(__func__, stream, [pGraph](fake::State& state, auto&, const auto& found) {
    return fake::End(state, *found, pGraph);
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  enum cudaStreamCaptureStatus* pCaptureStatus) {
  return fake::StreamCall(__func__, stream, [&](fake::State& state, auto&, const auto& found) {
    return fake::IsCapturing(state, *found, pCaptureStatus);
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  return fake::Query(__func__, [&] { return fake::ExchangeCaptureMode(mode); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return fake::Query(__func__,
                     [&] { return graph == nullptr ? cudaErrorInvalidValue : cudaSuccess; });
}

}  // extern "C"
