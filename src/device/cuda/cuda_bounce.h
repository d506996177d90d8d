// The way between a GPU and host memory that it does not reach: through slots of pinned memory,
// a part at a time.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_BOUNCE_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_BOUNCE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "device/cuda/cuda_event.h"
#include "device/device.h"
#include "device/strided_copy.h"
#include "tensor/stretch.h"

namespace sluice {

// A copy as two: from the source to a slot, dense and in element order, and from there to the
// destination.
class BouncedCopy {
 public:
  // Refers to the copy's runs. Elements are cast by the half that the GPU does: `to_gpu` says that
  // this is the second one.
  void Assign(const StridedCopy& copy, bool to_gpu);

  // Elements [begin, end), which are in the slot from its start.
  StridedCopy FirstHalf(std::byte* slot, int64_t begin, int64_t end) const;
  StridedCopy SecondHalf(const std::byte* slot, int64_t begin, int64_t end) const;

  int64_t slot_element_bytes() const { return element_bytes_; }

 private:
  StridedCopy first_;
  StridedCopy second_;
  std::vector<Stretch> runs_;  // of first_, then of second_
  int64_t element_bytes_ = 1;
};

// Slots in a ring: taken in order, and given back in order.
class BounceRing {
 public:
  static constexpr size_t kSlots = 8;

  struct Slot {
    std::byte* data = nullptr;
    UniqueCudaEvent passed;  // what the GPU does with it
    bool busy = false;       // the GPU may still be at it
    int64_t begin = 0;       // what is in it
    int64_t end = 0;
  };

  // `bytes` in all, of pinned memory.
  static absl::StatusOr<std::unique_ptr<BounceRing>> Create(int ordinal, int64_t bytes);

  int64_t slot_bytes() const { return slot_bytes_; }

  // The slot to be filled next, or null while it is in use.
  absl::StatusOr<Slot*> Free();
  // That slot is in use until the GPU has got past the stream's work.
  absl::Status Sent(cudaStream_t stream);

  // The same, and then until the host has taken what the GPU put there.
  absl::Status Awaited(cudaStream_t stream);
  // The slots that are awaited, the first one if the GPU is done with it, or null.
  bool awaits() const { return awaited_ > 0; }
  absl::StatusOr<Slot*> Arrived();
  void Taken();

 private:
  BounceRing() = default;

  DeviceMemory memory_;
  int64_t slot_bytes_ = 0;
  std::array<Slot, kSlots> slots_;
  size_t next_ = 0;
  size_t awaited_ = 0;  // before next_
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_BOUNCE_H_
