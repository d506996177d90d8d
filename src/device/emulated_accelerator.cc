// The accelerator that makes a session use an emulated device.
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "device/emulated_device.h"
#include "sluice/accelerator.h"
#include "sluice/testing.h"

namespace sluice {
namespace {

class EmulatedAccelerator final : public Accelerator {
 public:
  explicit EmulatedAccelerator(double bytes_per_s) : bytes_per_s_(bytes_per_s) {}

  std::string description() const override {
    return bytes_per_s_ > 0 ? absl::StrCat("an emulated device (", bytes_per_s_ / 1e9, " GB/s)")
                            : "an emulated device";
  }
  DeviceKind kind() const override { return kEmulatedDevice; }
  int32_t ordinal() const override { return 0; }
  absl::StatusOr<std::unique_ptr<Device>> OpenDevice() override {
    return MakeEmulatedDevice(bytes_per_s_);
  }
  // All of it is host memory, which looks the same everywhere.
  absl::Status CheckMemory(const void*, DeviceKind kind) const override {
    if (kind == DeviceKind::kCpu || kind == kEmulatedDevice) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("memory of DLPack's kind ",
                                                   static_cast<int>(kind),
                                                   ", but the session uses ", description()));
  }
  absl::Status CheckStream(StreamHandle) const override { return absl::OkStatus(); }

 private:
  const double bytes_per_s_;
};

}  // namespace

std::shared_ptr<Accelerator> MakeEmulatedAccelerator(double bytes_per_s) {
  return std::make_shared<EmulatedAccelerator>(bytes_per_s);
}

}  // namespace sluice
