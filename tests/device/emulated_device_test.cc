// The emulated device under the contract of devices, its thread, its fences and its rate.
#include "device/emulated_device.h"

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "device/copy_flat.h"
#include "device/device_contract.h"
#include "device/reference_copy.h"
#include "gtest/gtest.h"
#include "sluice/tensor.h"
#include "sluice/testing.h"

namespace sluice {
namespace {

std::unique_ptr<Device> Unlimited() { return MakeEmulatedDevice(0).value(); }
std::unique_ptr<Device> Limited() { return MakeEmulatedDevice(20e9).value(); }

INSTANTIATE_TEST_SUITE_P(Emulated, DeviceContract, testing::Values(&Unlimited, &Limited));

TEST(EmulatedDevice, TakesNoLessTimeThanItsRateAllows) {
  const std::unique_ptr<Device> device = MakeEmulatedDevice(100e6).value();
  const std::vector<std::byte> src(2'000'000, std::byte{5});
  std::vector<std::byte> dst(src.size());
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(
      CopyFlat(device.get(), src.data(), DeviceKind::kCpu, dst.data(), kEmulatedDevice, src.size())
          .ok());
  // A bound from below alone: a busy machine is slower.
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(19));
  EXPECT_EQ(dst, src);
}

TEST(EmulatedDevice, CopiesWhileItsCallerGoesOn) {
  const std::unique_ptr<Device> device = MakeEmulatedDevice(10e6).value();
  const std::vector<std::byte> src(1'000'000, std::byte{9});
  std::vector<std::byte> dst(src.size());
  BoxCopy box(DType::kU8, {static_cast<int64_t>(src.size())}, {1}, {1});
  StridedCopy& copy = box.copy;
  copy.src = src.data();
  copy.dst = dst.data();
  copy.dst_kind = kEmulatedDevice;
  const std::unique_ptr<Fence> ready = device->MakeFence().value();
  EXPECT_TRUE(ready->Passed().value()) << "nothing is marked";
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(
      device->Start({.copies = absl::MakeConstSpan(&copy, 1), .cookie = 3, .then = ready.get()})
          .ok());
  uint64_t cookie = 0;
  const int early = device->Poll(absl::MakeSpan(&cookie, 1)).value();
  const bool passed_early = ready->Passed().value();
  // Not if this thread was away for long.
  if (absl::Now() - begin < absl::Milliseconds(99)) {
    EXPECT_EQ(early, 0);
    EXPECT_FALSE(passed_early);
  }
  ASSERT_TRUE(ready->HoldBack({}).ok());
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(99));
  EXPECT_TRUE(ready->Passed().value());
  EXPECT_EQ(dst, src);
  for (int polled = early; polled == 0;) {
    absl::SleepFor(absl::Milliseconds(1));
    polled = device->Poll(absl::MakeSpan(&cookie, 1)).value();
  }
  EXPECT_EQ(cookie, 3u);
}

// What is started is done before the device ends, and its fences may be gone.
TEST(EmulatedDevice, EndsWithAllThatWasStarted) {
  std::vector<std::byte> dst(100'000);
  const std::vector<std::byte> src(dst.size(), std::byte{1});
  std::unique_ptr<Device> device = MakeEmulatedDevice(10e6).value();
  {
    const std::unique_ptr<Fence> fence = device->MakeFence().value();
    BoxCopy box(DType::kU8, {static_cast<int64_t>(src.size())}, {1}, {1});
    StridedCopy& copy = box.copy;
    copy.src = src.data();
    copy.dst = dst.data();
    ASSERT_TRUE(device->Start({.copies = absl::MakeConstSpan(&copy, 1), .then = fence.get()}).ok());
  }
  device = nullptr;
  EXPECT_EQ(dst, src);
}

TEST(EmulatedAccelerator, SaysThatItIsEmulated) {
  const std::shared_ptr<Accelerator> accelerator = MakeEmulatedAccelerator(18e9);
  EXPECT_EQ(accelerator->description(), "an emulated device (18 GB/s)");
  EXPECT_EQ(accelerator->kind(), kEmulatedDevice);
  EXPECT_FALSE(accelerator->CheckMemory(nullptr, DeviceKind::kCuda).ok());
}

}  // namespace
}  // namespace sluice
