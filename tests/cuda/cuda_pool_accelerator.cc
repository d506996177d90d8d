// Hands everything on, but buffers.
#include "cuda/cuda_pool_accelerator.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "fakes/fake_cuda.h"

namespace sluice::session_test {
namespace {

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

std::shared_ptr<Accelerator> WithPools(std::shared_ptr<Accelerator> inner) {
  return std::make_shared<PoolAccelerator>(std::move(inner));
}

}  // namespace sluice::session_test
