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
  // `device` must outlive this object.
  explicit CopyQueue(Device* device) : device_(device) {}

  // What follows belongs to `cookie`; `*pending` counts its batches that have not ended, and must
  // stay where it is until they have.
  void Begin(uint64_t cookie, int* pending) {
    cookie_ = cookie;
    pending_ = pending;
  }
  absl::Status Add(const StridedCopy& copy);
  // `elements` one after another, cast where the types differ.
  absl::Status AddFlat(const std::byte* src, DType src_dtype, std::byte* dst, DType dst_dtype,
                       int64_t elements);
  absl::Status Add(const Reduction& reduction);
  absl::Status Add(const Normalization& normalization);
  // Starts what has been added. What is added next sees its results.
  absl::Status Flush();

  int outstanding() const { return outstanding_; }
  // Fills `cookies` with batches that have ended; returns how many. The caller counts them down.
  absl::StatusOr<int> Poll(absl::Span<uint64_t> cookies);

 private:
  Device* const device_;
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
  // Of batches that ended while there was no room for another to start. As long as the largest
  // bucket has made it.
  std::vector<uint64_t> ended_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_COPY_QUEUE_H_
