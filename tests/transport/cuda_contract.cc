// Contract ranks over device memory.
#include "transport/cuda_contract.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_load.h"
#include "gtest/gtest.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

cudaStream_t MakeStream(int ordinal) {
  EXPECT_EQ(cudaSetDevice(ordinal), cudaSuccess);
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_TRUE(LoadCudaKernels(ordinal).ok());  // as a device does
  return stream;
}

class StreamOnlyDevice final : public CudaDevice {
 public:
  explicit StreamOnlyDevice(int ordinal) : CudaDevice(ordinal, MakeStream(ordinal)) {}
  ~StreamOnlyDevice() override {
    EXPECT_EQ(cudaStreamSynchronize(transport_stream()), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(transport_stream()), cudaSuccess);
  }
  absl::StatusOr<uint64_t> HoldBackTransport() override { return 1; }
  void TransportHandedOut(uint64_t /*number*/) override {}
  cudaStream_t fill_stream() const override { return transport_stream(); }
  cudaStream_t drain_stream() const override { return transport_stream(); }

  absl::StatusOr<DeviceMemory> AllocateStaging(size_t /*bytes*/) override { return None(); }
  absl::StatusOr<DeviceMemory> AllocateBuffer(size_t /*bytes*/) override { return None(); }
  absl::StatusOr<std::unique_ptr<Fence>> MakeFence() override { return None(); }
  absl::Status Start(const CopyBatch& /*batch*/) override { return None(); }
  absl::StatusOr<int> Poll(absl::Span<uint64_t> /*cookies*/) override { return 0; }
  std::vector<DeviceSpan> TakeSpans() override { return {}; }

 private:
  static absl::Status None() { return absl::UnimplementedError("a device for a stream only"); }
};

class CudaMemory final : public ContractMemory {
 public:
  CudaMemory(int ordinal, std::shared_ptr<TransportMaker> maker)
      : device_(MakeStreamOnlyDevice(ordinal)), maker_(std::move(maker)) {}
  ~CudaMemory() override {
    EXPECT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
    for (std::byte* const buffer : buffers_) EXPECT_EQ(cudaFree(buffer), cudaSuccess);
  }

  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport(Fabric* fabric) override {
    return maker_->Open(fabric, device_.get());
  }

  std::byte* Allocate(size_t bytes) override {
    void* data = nullptr;
    EXPECT_EQ(cudaSetDevice(cuda().ordinal()), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&data, bytes), cudaSuccess);
    buffers_.push_back(static_cast<std::byte*>(data));
    return buffers_.back();
  }

  void Free(std::byte* data) override {
    EXPECT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
    EXPECT_EQ(cudaFree(data), cudaSuccess);
    std::erase(buffers_, data);
  }

  void Write(std::byte* to, absl::Span<const std::byte> bytes) override {
    if (bytes.empty()) return;
    EXPECT_EQ(cudaMemcpyAsync(to, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream()),
              cudaSuccess);
  }

  std::vector<std::byte> Read(const std::byte* from, size_t bytes) override {
    std::vector<std::byte> content(bytes);
    if (bytes == 0) return content;
    EXPECT_EQ(cudaMemcpyAsync(content.data(), from, bytes, cudaMemcpyDeviceToHost, stream()),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
    return content;
  }

  bool IsBusy() override { return cudaStreamQuery(stream()) == cudaErrorNotReady; }

  // Who reads it has it open, or its sender has not ended.
  bool must_stay() const override { return false; }

 private:
  const CudaDevice& cuda() const { return static_cast<const CudaDevice&>(*device_); }
  cudaStream_t stream() const { return cuda().transport_stream(); }

  const std::unique_ptr<Device> device_;
  const std::shared_ptr<TransportMaker> maker_;
  std::vector<std::byte*> buffers_;
};

}  // namespace

// Programs instantiate those of the contract that concern their transports.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FabricContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GroupContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportContract);

std::unique_ptr<Device> MakeStreamOnlyDevice(int ordinal) {
  return std::make_unique<StreamOnlyDevice>(ordinal);
}

std::unique_ptr<ContractMemory> CudaContractMemory(int ordinal,
                                                   std::shared_ptr<TransportMaker> maker) {
  return std::make_unique<CudaMemory>(ordinal, std::move(maker));
}

}  // namespace sluice
