// Which memory a session takes, and which device it copies with.
#include "session/base/memory_rules.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/base/open_device.h"

namespace sluice {
namespace {

using testing::HasSubstr;

// Device 1, whose own memory is `own` alone.
class OneByteAccelerator final : public Accelerator {
 public:
  std::string description() const override { return "cuda:1 (small)"; }
  DeviceKind kind() const override { return DeviceKind::kCuda; }
  int32_t ordinal() const override { return 1; }
  absl::StatusOr<std::unique_ptr<Device>> OpenDevice() override {
    return absl::ResourceExhaustedError("no stream left");
  }
  absl::Status CheckMemory(const void* data, DeviceKind kind) const override {
    if ((data == &own) == (kind == DeviceKind::kCuda)) return absl::OkStatus();
    return absl::InvalidArgumentError("not what it is said to be");
  }
  absl::Status CheckStream(StreamHandle) const override { return absl::OkStatus(); }

  std::byte own{};
};

// Sends from one byte alone.
class OneByteTransport final : public Transport {
 public:
  explicit OneByteTransport(const std::byte* may)
      : Transport(TransportTraits{.name = "one byte"}), may_(may) {}
  bool CanSendFrom(const std::byte* data) override { return data == may_; }
  absl::Status Reserve(int) override { return absl::OkStatus(); }
  absl::Status UseStaging(absl::Span<std::byte>) override { return absl::OkStatus(); }
  absl::Status Start(absl::Span<const TransportOp>) override {
    return absl::ResourceExhaustedError("no room");
  }
  absl::StatusOr<int> Poll(absl::Span<TransportEvent>) override { return 0; }
  void Withdraw() override {}
  int outstanding() const override { return 0; }

 private:
  const std::byte* const may_;
};

TensorView ViewOn(DeviceKind device, int32_t ordinal) {
  TensorView view;
  view.device = device;
  view.device_ordinal = ordinal;
  return view;
}

TEST(MemoryRulesTest, HostMemoryIsAlwaysTaken) {
  const OneByteAccelerator accelerator;
  for (const Accelerator* with :
       {static_cast<const Accelerator*>(nullptr), static_cast<const Accelerator*>(&accelerator)}) {
    const MemoryRules rules = {.accelerator = with};
    EXPECT_TRUE(CheckKind(rules, ViewOn(DeviceKind::kCpu, 0)).ok());
    EXPECT_TRUE(CheckKind(rules, ViewOn(DeviceKind::kCudaHost, 7)).ok());
  }
}

TEST(MemoryRulesTest, DeviceMemoryIsTheAcceleratorsOwn) {
  const OneByteAccelerator accelerator;
  const MemoryRules rules = {.accelerator = &accelerator};
  EXPECT_TRUE(CheckKind(rules, ViewOn(DeviceKind::kCuda, 1)).ok());
  EXPECT_EQ(CheckKind(rules, ViewOn(DeviceKind::kCuda, 0)),
            absl::InvalidArgumentError("view is in memory of device 0 of DLPack's kind 2, the "
                                       "session uses cuda:1 (small)"));
  const absl::Status status = CheckKind(MemoryRules(), ViewOn(DeviceKind::kCuda, 1));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("without an accelerator"));
}

TEST(MemoryRulesTest, TheAcceleratorLooksAtTheMemory) {
  const OneByteAccelerator accelerator;
  const MemoryRules rules = {.accelerator = &accelerator};
  const std::byte host{};
  EXPECT_TRUE(CheckMemory(rules, &accelerator.own, DeviceKind::kCuda).ok());
  EXPECT_TRUE(CheckMemory(rules, &host, DeviceKind::kCpu).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckMemory(rules, &host, DeviceKind::kCuda)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckMemory(rules, &accelerator.own, DeviceKind::kCpu)));
  EXPECT_TRUE(CheckMemory(MemoryRules(), &host, DeviceKind::kCuda).ok());
}

TEST(MemoryRulesTest, MessagesAreSentFromWhereTheTransportTakesThem) {
  const std::byte may{};
  const std::byte other{};
  OneByteTransport transport(&may);
  MemoryRules rules = {.transport = &transport};
  EXPECT_TRUE(CanSendFrom(rules, &other, DeviceKind::kCpu));
  EXPECT_TRUE(CanSendFrom(rules, &other, DeviceKind::kCudaHost));
  EXPECT_FALSE(CanSendFrom(rules, &may, DeviceKind::kCuda));
  rules.takes_host_memory = false;
  rules.takes_device_memory = true;
  EXPECT_FALSE(CanSendFrom(rules, &may, DeviceKind::kCpu));
  EXPECT_TRUE(CanSendFrom(rules, &may, DeviceKind::kCuda));
  EXPECT_FALSE(CanSendFrom(rules, &other, DeviceKind::kCuda));
  rules.transport = nullptr;
  EXPECT_TRUE(CanSendFrom(rules, &other, DeviceKind::kCuda));
}

TEST(OpenDeviceTest, TheAcceleratorOpensItsOwn) {
  SessionOptions options;
  const absl::StatusOr<std::unique_ptr<Device>> host = OpenDevice(options);
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_EQ((*host)->traits().staging, DeviceKind::kCpu);
  EXPECT_FALSE((*host)->MakeFence().ok());
  options.accelerator = std::make_shared<OneByteAccelerator>();
  EXPECT_EQ(OpenDevice(options).status(), absl::ResourceExhaustedError("no stream left"));
}

}  // namespace
}  // namespace sluice
