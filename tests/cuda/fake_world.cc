// Devices and transports over the fakes.
#include "cuda/fake_world.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "fakes/fake_cuda.h"
#include "gtest/gtest.h"
#include "sluice/accelerator.h"
#include "sluice/cuda.h"
#include "sluice/nccl.h"
#include "transport/loopback/loopback.h"

namespace sluice::session_test {
namespace {

absl::StatusOr<std::shared_ptr<TransportMaker>> MakeTransport(
    FakeTransport transport, const std::shared_ptr<Accelerator>& accelerator) {
  switch (transport) {
    case FakeTransport::kMessages:
      break;
    case FakeTransport::kNccl:
      return MakeNcclTransport(accelerator);
    case FakeTransport::kNcclRegistered:
      return MakeNcclTransport(accelerator, {.register_staging = true});
    case FakeTransport::kCudaIpc:
    case FakeTransport::kCudaIpcOfPools:
      return MakeCudaIpcTransport(accelerator);
  }
  return std::shared_ptr<TransportMaker>();
}

class PoolDevice final : public Device {
 public:
  explicit PoolDevice(std::unique_ptr<Device> inner)
      : Device(inner->traits()), inner_(std::move(inner)) {}

  absl::StatusOr<DeviceMemory> AllocateStaging(size_t bytes) override {
    return inner_->AllocateStaging(bytes);
  }
  absl::StatusOr<DeviceMemory> AllocateBuffer(size_t bytes) override {
    std::optional<FakeCudaPool> pool;
    if (buffers_++ % 3 != 1) pool.emplace();
    return inner_->AllocateBuffer(bytes);
  }
  absl::StatusOr<std::unique_ptr<Fence>> MakeFence() override { return inner_->MakeFence(); }
  absl::Status Start(const CopyBatch& batch) override { return inner_->Start(batch); }
  absl::StatusOr<int> Poll(absl::Span<uint64_t> cookies) override { return inner_->Poll(cookies); }
  std::vector<DeviceSpan> TakeSpans() override { return inner_->TakeSpans(); }

 private:
  const std::unique_ptr<Device> inner_;
  int buffers_ = 0;
};

// An accelerator of the fake CUDA runtime. The device that is opened first is the session's, and as
// `inner` has it. Of later ones, which tests have for their tensors, two of three buffers are of a
// pool: other processes cannot open them.
class PoolAccelerator final : public Accelerator {
 public:
  explicit PoolAccelerator(std::shared_ptr<Accelerator> inner) : inner_(std::move(inner)) {}

  std::string description() const override { return inner_->description(); }
  DeviceKind kind() const override { return inner_->kind(); }
  int32_t ordinal() const override { return inner_->ordinal(); }
  absl::StatusOr<std::unique_ptr<Device>> OpenDevice() override {
    absl::StatusOr<std::unique_ptr<Device>> device = inner_->OpenDevice();
    if (devices_++ == 0 || !device.ok()) return device;
    return std::make_unique<PoolDevice>(*std::move(device));
  }
  absl::Status CheckMemory(const void* data, DeviceKind kind) const override {
    return inner_->CheckMemory(data, kind);
  }
  absl::Status CheckStream(StreamHandle stream) const override {
    return inner_->CheckStream(stream);
  }
  absl::StatusOr<MemoryRange> FindMemory(const void* data) const override {
    return inner_->FindMemory(data);
  }

 private:
  const std::shared_ptr<Accelerator> inner_;
  int devices_ = 0;
};

}  // namespace

std::string NameOf(FakeTransport transport) {
  switch (transport) {
    case FakeTransport::kMessages:
      return "Messages";
    case FakeTransport::kNccl:
      return "Nccl";
    case FakeTransport::kNcclRegistered:
      return "NcclRegistered";
    case FakeTransport::kCudaIpc:
      return "CudaIpc";
    case FakeTransport::kCudaIpcOfPools:
      return "CudaIpcOfPools";
  }
  return "";
}

void RunRanksOnFakeGpus(int size, int gpus, FakeTransport transport, const RankBody& body,
                        int others) {
  FakeCudaConfig config = FakeCudaConfiguration();
  config.devices = others + gpus;
  config.same_process_ipc = true;
  // Ranks end one after the other, and close what they have open of others when they do.
  config.free_while_open = true;
  FakeCudaConfigure(config);
  RunRanksOn(MakeLoopbackFabrics(std::vector<int>(static_cast<size_t>(size), 0)), [&](Rank& self) {
    const auto accelerator = MakeCudaAccelerator({.ordinal = others + self.rank % gpus});
    ASSERT_TRUE(accelerator.ok()) << accelerator.status();
    const auto made = MakeTransport(transport, *accelerator).value();
    self.accelerator = *accelerator;
    if (transport == FakeTransport::kCudaIpcOfPools)
      self.accelerator = std::make_shared<PoolAccelerator>(*accelerator);
    self.transport = made;
    body(self);
  });
}

}  // namespace sluice::session_test
