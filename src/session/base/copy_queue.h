// Collects the copies of a bucket's stage into batches, and hands them to the device.
#ifndef SLUICE_SRC_SESSION_COPY_QUEUE_H_
#define SLUICE_SRC_SESSION_COPY_QUEUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "sluice/tensor.h"
#include "tensor/run.h"

namespace sluice {

// Copies come first in a batch, reductions after them; batches are carried out one after the other.
class CopyQueue {
 public:
  // `device` must outlive this object. `in_stream_order`: as in CopyBatch.
  explicit CopyQueue(Device* device, bool in_stream_order = false)
      : device_(device), in_stream_order_(in_stream_order) {}

  // What follows belongs to `cookie`; `*pending` counts its batches that have not ended, and must
  // stay where it is until they have.
  void Begin(uint64_t cookie, int* pending) {
    cookie_ = cookie;
    pending_ = pending;
  }
  absl::Status Add(const StridedCopy& copy);
  // A stretch of memory whose elements lie one after another.
  struct Flat {
    const std::byte* data = nullptr;
    DType dtype = DType::kU8;
    DeviceKind kind = DeviceKind::kCpu;
  };
  // `elements` from `src` to `dst` (which is written), cast where the types differ.
  absl::Status AddFlat(const Flat& src, const Flat& dst, int64_t elements);
  absl::Status Add(const Reduction& reduction);
  absl::Status Add(const Normalization& normalization);
  // Starts what has been added. What is added next sees its results.
  absl::Status Flush();

  // A batch of nothing, with a cookie of its own: it ends when all that was flushed before is
  // complete.
  absl::Status Mark(uint64_t cookie);
  // In stream order: has what is flushed later come after `after`, or marks this place as `then`,
  // which is done once HasEnded of the number that this returns.
  absl::StatusOr<int64_t> Order(Fence* after, Fence* then);
  bool HasEnded(int64_t order) const { return orders_ended_ >= order; }
  // A batch of nothing, of which outstanding() alone tells, also after a failure. It ends when the
  // device has come past all that it, or a transport in stream order, has been given.
  absl::Status Finish();

  int outstanding() const { return outstanding_; }
  // Fills `cookies` with batches that have ended; returns how many. The caller counts them down.
  absl::StatusOr<int> Poll(absl::Span<uint64_t> cookies);

 private:
  absl::Status Begin(const CopyBatch& batch);
  static constexpr uint64_t kOrder = ~uint64_t{0};  // a cookie

  Device* const device_;
  const bool in_stream_order_;
  uint64_t cookie_ = 0;
  int* pending_ = nullptr;
  std::array<StridedCopy, 32> copies_;
  std::array<Run, 32> flat_runs_;  // of the copies that AddFlat made, by their places
  std::array<Reduction, 32> reductions_;
  std::array<Normalization, 32> normalizations_;
  size_t copy_count_ = 0;
  size_t reduction_count_ = 0;
  size_t normalization_count_ = 0;
  int outstanding_ = 0;
  int64_t orders_begun_ = 0;
  int64_t orders_ended_ = 0;
  // Of batches that ended while there was no room for another to start. As long as the largest
  // bucket has made it.
  std::vector<uint64_t> ended_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_COPY_QUEUE_H_
