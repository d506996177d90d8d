// Streams that are being captured into graphs, and what threads may not do meanwhile.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_CAPTURE_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_CAPTURE_H_

#include <string_view>

#include "fakes/fake_cuda_state.h"

namespace sluice::fake_cuda {

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

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_CAPTURE_H_
