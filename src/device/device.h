// The seam to memory: where staging lives and who copies between it and tensors.
//
// A device copies, casts, reduces, normalizes and allocates; it decides nothing.
#ifndef SLUICE_SRC_DEVICE_DEVICE_H_
#define SLUICE_SRC_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/normalization.h"
#include "device/reduction.h"
#include "device/strided_copy.h"

namespace sluice {

// Memory that a device gave out; freed when destroyed. Movable only.
class DeviceMemory {
 public:
  using Deleter = void (*)(std::byte* data, size_t bytes);

  DeviceMemory() = default;
  DeviceMemory(std::byte* data, size_t bytes, Deleter deleter)
      : data_(data), bytes_(bytes), deleter_(deleter) {}
  DeviceMemory(DeviceMemory&& other) noexcept { *this = static_cast<DeviceMemory&&>(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    Free();
    data_ = other.data_, bytes_ = other.bytes_, deleter_ = other.deleter_;
    other.data_ = nullptr, other.bytes_ = 0;
    return *this;
  }
  ~DeviceMemory() { Free(); }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // Gives the memory up without freeing it, for good.
  void Abandon() {
    data_ = nullptr;
    bytes_ = 0;
  }

 private:
  void Free() {
    if (data_ != nullptr) deleter_(data_, bytes_);
    data_ = nullptr;
  }
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  Deleter deleter_ = nullptr;
};

// All that one stage of one bucket does to bytes: copies in any order, then reductions one after
// the other, then normalizations in any order.
struct CopyBatch {
  absl::Span<const StridedCopy> copies;
  uint64_t cookie = 0;
  absl::Span<const Reduction> reductions = {};
  absl::Span<const Normalization> normalizations = {};
};

class Device {
 public:
  virtual ~Device() = default;

  // Staging memory, page-aligned; physical pages come with first use where the device allows, near
  // the CPUs that the process is bound to at the time of the call.
  // ResourceExhausted names the bytes. No memory (data() is null) for 0 bytes.
  virtual absl::StatusOr<DeviceMemory> AllocateStaging(size_t bytes) = 0;

  // The same of the device's own memory, for what consumers are to find there. Aligned to 64 bytes
  // at least. The host device's is page-aligned and like staging.
  virtual absl::StatusOr<DeviceMemory> AllocateBuffer(size_t bytes) = 0;

  // True if staging lies where consumers look for items, so that what was read or received there
  // can be handed over as it lies.
  virtual bool staging_is_device_memory() const = 0;

  // Starts a batch; its spans need to live only for the call. ResourceExhausted, and nothing is
  // done, while kMaxOutstanding batches are started and not polled.
  virtual absl::Status Start(const CopyBatch& batch) = 0;

  // Fills `cookies` from the front with batches that are complete; returns how many.
  virtual absl::StatusOr<int> Poll(absl::Span<uint64_t> cookies) = 0;

  static constexpr int kMaxOutstanding = 64;
};

// Does its work with the calling thread, inside Start.
std::unique_ptr<Device> MakeHostDevice();

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_DEVICE_H_
