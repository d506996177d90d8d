// Devices of a stream alone, memory on them, and a ring of ranks with an alarm.
#include "transport/cuda_contract.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_load.h"
#include "device/device.h"
#include "gtest/gtest.h"
#include "transport/thread_ranks.h"
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

absl::Status PollOnce(Transport& transport) {
  std::vector<TransportEvent> events(4);
  const absl::StatusOr<int> count = transport.Poll(absl::MakeSpan(events));
  if (!count.ok()) return count.status();
  absl::Status status;
  for (int i = 0; i < *count; ++i) status.Update(events[static_cast<size_t>(i)].status);
  return status;
}

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

std::vector<absl::Status> OpenOnGpus(const std::vector<int>& nodes,
                                     const std::vector<int>& ordinals,
                                     const TransportMakerMaker& maker) {
  std::vector<absl::Status> outcomes(nodes.size());
  OnThreads(nodes, [&](std::unique_ptr<Fabric> fabric) {
    const auto rank = static_cast<size_t>(fabric->rank());
    const std::unique_ptr<Device> device =
        ordinals[rank] < 0 ? MakeHostDevice() : MakeStreamOnlyDevice(ordinals[rank]);
    outcomes[rank] = maker()->Open(fabric.get(), device.get()).status();
  });
  return outcomes;
}

std::vector<absl::Status> CudaJob::Run() {
  std::vector<absl::Status> outcomes(static_cast<size_t>(size_));
  OnThreads(std::vector<int>(static_cast<size_t>(size_), 0), [&](std::unique_ptr<Fabric> fabric) {
    const auto rank = static_cast<size_t>(fabric->rank());
    const std::unique_ptr<ContractMemory> memory = memory_(fabric->rank());
    outcomes[rank] = ExchangeAndEnd(fabric.get(), memory.get());
    // Nobody's memory goes while another rank may have it open.
    all_have_ended_.arrive_and_wait();
  });
  return outcomes;
}

absl::Status CudaJob::ExchangeAndEnd(Fabric* fabric, ContractMemory* memory) {
  auto transport = memory->OpenTransport(fabric);
  if (!transport.ok()) return transport.status();
  absl::Status status = Exchange(fabric->rank(), memory, **transport);
  if (!status.ok()) alarm_ = true;
  ++done_;
  // Nobody leaves while others may still have to be ended.
  while (done_ < size_ && !alarm_) std::this_thread::yield();
  if (alarm_) (*transport)->Withdraw();
  return status.ok() && alarm_ ? absl::CancelledError("alarm") : status;
}

absl::Status CudaJob::Exchange(int rank, ContractMemory* memory, Transport& transport) {
  absl::Status status = transport.Reserve(2 * kGroups);
  std::byte* const data = memory->Allocate(2 * kBytes);
  status.Update(transport.UseStaging({data, 2 * kBytes}));
  const int next = (rank + 1) % size_, previous = (rank + size_ - 1) % size_;
  for (int group = 0; status.ok() && group < kGroups; ++group) {
    status =
        transport.Start({{TransportOp::Kind::kSend, next, 0, data, kBytes, 1},
                         {TransportOp::Kind::kReceive, previous, 0, data + kBytes, kBytes, 2}});
  }
  return status.ok() ? PollUntilEnded(rank, memory, transport) : status;
}

absl::Status CudaJob::PollUntilEnded(int rank, ContractMemory* memory, Transport& transport) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  absl::Status status;
  // What has been launched may yet fail.
  while (status.ok() && !alarm_ && (transport.outstanding() > 0 || memory->IsBusy())) {
    status = PollOnce(transport);
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "rank " << rank << " hangs";
      return absl::InternalError("hangs");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return status;
}

int Failed(const std::vector<absl::Status>& outcomes) {
  return static_cast<int>(std::count_if(outcomes.begin(), outcomes.end(),
                                        [](const absl::Status& status) { return !status.ok(); }));
}

}  // namespace sluice
