// How every call of the fake CUDA runtime begins and ends: counted, failed if asked for, refused if
// there is no device, and remembered as the thread's last error.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_CALL_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_CALL_H_

#include "cuda_runtime_api.h"

namespace sluice::fake_cuda {

// What a call that is to fail does first: nothing, or all the same what it is for.
enum class IfFailed { kNothing, kDoIt };

enum class TakesContext { kNo, kYes };

struct Opening {
  bool run;           // the call's body
  cudaError_t error;  // to be returned whatever the body says, unless cudaSuccess
};

Opening Open(const char* function, IfFailed if_failed, TakesContext takes_context);
cudaError_t Remember(cudaError_t error);

// Counts a call that works without a device; what it is to fail with.
cudaError_t CountCall(const char* function);

// Counts a call of the driver's. It fails only if a failure of that function was asked for.
cudaError_t CountDriverCall(const char* function);

// A call that takes a context, and makes one for a thread that has none. `body` returns its result.
template <class Body>
cudaError_t Call(const char* function, IfFailed if_failed, const Body& body) {
  const Opening opening = Open(function, if_failed, TakesContext::kYes);
  const cudaError_t result = opening.run ? body() : cudaSuccess;
  return Remember(opening.error != cudaSuccess ? opening.error : result);
}

template <class Body>
cudaError_t Call(const char* function, const Body& body) {
  return Call(function, IfFailed::kNothing, body);
}

// A call that takes none.
template <class Body>
cudaError_t Query(const char* function, const Body& body) {
  const Opening opening = Open(function, IfFailed::kNothing, TakesContext::kNo);
  return Remember(opening.run ? body() : opening.error);
}

// Counts a call in which the host waits for a device.
void CountHostWait();

// Whether the operation that is being enqueued on the device is to fail, and with what.
cudaError_t NextOperationFailure(int device);

// Forgets counts, failures to come and every thread's last error.
void ForgetCalls();

// ---- How libraries above the fake CUDA runtime take part in the check at the end of a test.

// FakeCudaCheckClean calls `check` first from now on. It reports what is left, and forgets it.
void AddCheck(void (*check)());

}  // namespace sluice::fake_cuda

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_CALL_H_
