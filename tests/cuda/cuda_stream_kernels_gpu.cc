// Functions of the host in a stream of a GPU.
#include <utility>

#include "cuda/cuda_stream_kernels.h"
#include "gtest/gtest.h"

namespace sluice::session_test {
namespace {

struct HostCall {
  std::function<void(void*)> kernel;
  void* data;
};

void CUDART_CB RunHostCall(void* argument) {
  const std::unique_ptr<HostCall> call(static_cast<HostCall*>(argument));
  call->kernel(call->data);
}

}  // namespace

StreamKernels::StreamKernels(cudaStream_t stream, size_t bytes_max) : stream_(stream) {
  EXPECT_EQ(cudaHostAlloc(&scratch_, bytes_max, cudaHostAllocDefault), cudaSuccess);
}

StreamKernels::~StreamKernels() { EXPECT_EQ(cudaFreeHost(scratch_), cudaSuccess); }

void StreamKernels::Launch(void* data, DeviceKind kind, size_t bytes,
                           std::function<void(void*)> kernel) {
  const bool is_on_device = kind == DeviceKind::kCuda;
  if (is_on_device) {
    EXPECT_EQ(cudaMemcpyAsync(scratch_, data, bytes, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  }
  auto call =
      std::make_unique<HostCall>(HostCall{std::move(kernel), is_on_device ? scratch_ : data});
  EXPECT_EQ(cudaLaunchHostFunc(stream_, RunHostCall, call.release()), cudaSuccess);
  if (is_on_device) {
    EXPECT_EQ(cudaMemcpyAsync(data, scratch_, bytes, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  }
}

}  // namespace sluice::session_test
