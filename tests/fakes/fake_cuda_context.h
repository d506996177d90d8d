// The primary contexts of devices, and which of them threads have.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_CONTEXT_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_CONTEXT_H_

#include <optional>
#include <string_view>

#include "fakes/fake_cuda_state.h"

namespace sluice::fake_cuda {

// The device that the runtime's calls of this thread go to: that of its current context, otherwise
// the one that it has chosen, at first 0.
int CurrentDevice();

// The device whose context the thread has, if any.
std::optional<int> CurrentContext();

// As cudaSetDevice: makes the device's context, and makes it current.
void ChooseDevice(State& state, int device);

// What the runtime does in calls that take a context: gives one to a thread that has none.
void BindContext(State& state);

// The driver's stack. Pop: nothing if there is none.
void PushContext(State& state, int device);
std::optional<int> PopContext();

// What NCCL does around much of its work: at the end it sets the device that the thread had at the
// beginning. That makes a context there, also where the thread never chose a device.
class DeviceSetAgain {
 public:
  DeviceSetAgain() : device_(CurrentDevice()) {}
  DeviceSetAgain(const DeviceSetAgain&) = delete;
  DeviceSetAgain& operator=(const DeviceSetAgain&) = delete;
  ~DeviceSetAgain();

 private:
  const int device_;
};

// No device has a context any more, and no thread one.
void ForgetContexts(State& state);

// ---- Streams that are being captured into graphs, and what threads may not do meanwhile.

// What the call fails with on this thread because of a capture. Those captures are invalid then.
cudaError_t CheckCaptures(State& state, std::string_view function);

// The same of a call that no capture allows, on a thread of a library's.
cudaError_t CheckUnsafeCall();

// What a call about a stream fails with that cannot be captured. The stream's capture is invalid
// then.
cudaError_t RefuseCapturing(Stream& stream, cudaError_t error);

// As cudaThreadExchangeStreamCaptureMode.
cudaError_t ExchangeCaptureMode(cudaStreamCaptureMode* mode);

}  // namespace sluice::fake_cuda

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_CONTEXT_H_
