// A device that writes its batches to a log, and ends one when a test says so.
#ifndef SLUICE_TESTS_FAKES_LOG_DEVICE_H_
#define SLUICE_TESTS_FAKES_LOG_DEVICE_H_

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "device/device.h"
#include "fakes/operations_log.h"

namespace sluice {

// Moves no bytes. Batches are called "pack", "unpack" or "copy" by their stage; one with reductions
// and no copies is called "add", one of nothing "mark", one of a fence "order".
class LogDevice final : public Device {
 public:
  // `log` must outlive the device and its memory. `unit`: what staging is called.
  LogDevice(const DeviceTraits& traits, OperationsLog* log, std::string unit)
      : Device(traits), log_(log), unit_(std::move(unit)) {}

  // Staging that is allocated from now on has units of `bytes` bytes each.
  void set_unit_bytes(size_t bytes) { unit_bytes_ = bytes; }

  bool End(absl::string_view name) { return batches_.End(name, absl::OkStatus()); }
  const LoggedOperations& batches() const { return batches_; }
  // The next Start fails, or the next allocation.
  void RefuseNext(const absl::Status& status) { refusal_ = status; }
  // The next Poll fails; later ones return what is outstanding.
  void Break(const absl::Status& status) { failure_ = status; }
  // The stream has come past fence "fence 1".
  void Pass(absl::string_view fence) { passed_.emplace(fence); }

  absl::StatusOr<DeviceMemory> AllocateStaging(size_t bytes) override;
  absl::StatusOr<DeviceMemory> AllocateBuffer(size_t bytes) override {
    return AllocateStaging(bytes);
  }
  absl::StatusOr<std::unique_ptr<Fence>> MakeFence() override;
  absl::Status Start(const CopyBatch& batch) override;
  absl::StatusOr<int> Poll(absl::Span<uint64_t> cookies) override;
  std::vector<DeviceSpan> TakeSpans() override { return {}; }

 private:
  class LogFence;
  std::string Describe(const StridedCopy& copy) const;
  std::string Describe(const CopyBatch& batch) const;

  OperationsLog* const log_;
  const std::string unit_;
  size_t unit_bytes_ = 64;
  std::vector<std::unique_ptr<std::byte[]>> memory_;  // NOLINT(modernize-avoid-c-arrays)
  LoggedOperations batches_;
  absl::Status refusal_;
  absl::Status failure_;
  std::set<std::string, std::less<>> passed_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_LOG_DEVICE_H_
