// Counts, failures to come, and last errors.
#include "fakes/fake_cuda_call.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_context.h"
#include "fakes/fake_cuda_state.h"
#include "fakes/locked.h"

namespace sluice {
namespace fake_cuda {
namespace {

struct Failure {
  std::string function;  // or empty: any
  int in_calls;
  cudaError_t error;
  int device;  // or negative: any
};

struct Calls {
  std::mutex mutex;
  std::map<std::string, int64_t, std::less<>> counts;
  int64_t all = 0;
  int64_t host_waits = 0;
  std::vector<Failure> failures;
  int in_operations = 0;
  int operation_device = -1;
  cudaError_t operation_error = cudaSuccess;
  int failed = 0;
  uint64_t epoch = 0;
};

Calls& TheCalls() {
  static auto* const calls = new Calls;
  return *calls;
}

struct ThreadState {
  cudaError_t error = cudaSuccess;
  uint64_t epoch = 0;
};

ThreadState& ThisThread() {
  thread_local ThreadState state;
  return state;
}

uint64_t Epoch() { return Locked(TheCalls())->epoch; }

// What stands in the way of any call.
cudaError_t SystemError(const State& state) {
  if (state.config.driver_version < CUDART_VERSION) return cudaErrorInsufficientDriver;
  return state.devices.empty() ? cudaErrorNoDevice : cudaSuccess;
}

// The error that the thread's device has come to, for good.
cudaError_t DeviceError() {
  auto [state, lock] = LockState();
  const auto device = static_cast<size_t>(CurrentDevice());
  return device < state.devices.size() ? state.devices[device].error : cudaSuccess;
}

}  // namespace

namespace {

enum class Of { kRuntime, kDriver };

cudaError_t Count(const char* function, Of of) {
  const Locked calls(TheCalls());
  ++calls->counts[function];
  if (of == Of::kRuntime) ++calls->all;
  cudaError_t error = cudaSuccess;
  for (Failure& failure : calls->failures) {
    if (failure.function.empty() ? of == Of::kDriver : failure.function != function) continue;
    if (failure.device >= 0 && failure.device != CurrentDevice()) continue;
    if (--failure.in_calls != 0) continue;
    error = failure.error;
    ++calls->failed;
  }
  return error;
}

}  // namespace

cudaError_t CountCall(const char* function) { return Count(function, Of::kRuntime); }

cudaError_t CountDriverCall(const char* function) { return Count(function, Of::kDriver); }

Opening Open(const char* function, IfFailed if_failed, TakesContext takes_context) {
  const cudaError_t failure = CountCall(function);
  State& state = TheState();
  {
    const Lock lock(state.mutex);
    const cudaError_t error = SystemError(state);
    if (error != cudaSuccess) return {.run = false, .error = error};
    if (takes_context == TakesContext::kYes) BindContext(state);
    const cudaError_t refused = CheckCaptures(state, function);
    if (refused != cudaSuccess) return {.run = false, .error = refused};
  }
  const cudaError_t error = failure != cudaSuccess ? failure : DeviceError();
  return {.run = error == cudaSuccess || if_failed == IfFailed::kDoIt, .error = error};
}

cudaError_t Remember(cudaError_t error) {
  if (error == cudaSuccess) return error;
  ThreadState& thread = ThisThread();
  thread.error = error;
  thread.epoch = Epoch();
  return error;
}

void CountHostWait() { ++Locked(TheCalls())->host_waits; }

cudaError_t NextOperationFailure(int device) {
  const Locked calls(TheCalls());
  if (calls->operation_device >= 0 && calls->operation_device != device) return cudaSuccess;
  if (calls->in_operations == 0 || --calls->in_operations != 0) return cudaSuccess;
  ++calls->failed;
  return calls->operation_error;
}

void ForgetCalls() {
  const Locked calls(TheCalls());
  calls->counts.clear();
  calls->failures.clear();
  calls->all = calls->host_waits = calls->in_operations = calls->failed = 0;
  ++calls->epoch;
}

// As cudaGetLastError: forgets it, but for an error that the device has come to.
static cudaError_t TakeLastError() {
  const cudaError_t device_error = DeviceError();
  if (device_error != cudaSuccess) return device_error;
  ThreadState& thread = ThisThread();
  const cudaError_t error = std::exchange(thread.error, cudaSuccess);
  return thread.epoch == Epoch() ? error : cudaSuccess;
}
}  // namespace fake_cuda

void FakeCudaFailAt(int nth_call, cudaError_t error) { FakeCudaFailAt("", nth_call, error); }

void FakeCudaFailAt(std::string_view function, int nth_call, cudaError_t error, int device) {
  const Locked calls(fake_cuda::TheCalls());
  calls->failures.push_back({std::string(function), nth_call, error, device});
}

void FakeCudaFailOperation(int nth_operation, cudaError_t error, int device) {
  const Locked calls(fake_cuda::TheCalls());
  calls->in_operations = nth_operation;
  calls->operation_error = error;
  calls->operation_device = device;
}

void FakeCudaFailNoMore() {
  const Locked calls(fake_cuda::TheCalls());
  calls->failures.clear();
  calls->in_operations = 0;
}

int FakeCudaFailures() { return Locked(fake_cuda::TheCalls())->failed; }

int64_t FakeCudaCalls(std::string_view function) {
  const Locked calls(fake_cuda::TheCalls());
  const auto found = calls->counts.find(function);
  return found == calls->counts.end() ? 0 : found->second;
}

int64_t FakeCudaAllCalls() { return Locked(fake_cuda::TheCalls())->all; }

int64_t FakeCudaHostWaits() { return Locked(fake_cuda::TheCalls())->host_waits; }

}  // namespace sluice

extern "C" {

cudaError_t cudaGetLastError() { return sluice::fake_cuda::TakeLastError(); }

}  // extern "C"
