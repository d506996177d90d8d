// Kernels of the fake CUDA runtime.
#include <utility>

#include "cuda/cuda_stream_kernels.h"
#include "fakes/fake_cuda.h"
#include "gtest/gtest.h"

namespace sluice::session_test {

StreamKernels::StreamKernels(cudaStream_t stream, size_t /*bytes_max*/) : stream_(stream) {}

StreamKernels::~StreamKernels() = default;

void StreamKernels::Launch(void* data, DeviceKind /*kind*/, size_t bytes,
                           std::function<void(void*)> kernel) {
  const auto run = [host = FakeCudaHostPointer(data, bytes), kernel = std::move(kernel)] {
    kernel(host);
  };
  EXPECT_EQ(FakeCudaEnqueue(stream_, run, {{data, bytes}}), cudaSuccess);
}

}  // namespace sluice::session_test
