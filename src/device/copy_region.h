// The region of a strided copy with its dimensions made as few and as long as they can be.
#ifndef SLUICE_SRC_DEVICE_COPY_REGION_H_
#define SLUICE_SRC_DEVICE_COPY_REGION_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "device/strided_copy.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {

// One or several dimensions that are walked as one.
struct RegionAxis {
  absl::Span<const Stretch> runs;  // none: one run from position 0, whose start is in the addresses
  int64_t scale = 1;               // positions per position of `runs`
  int64_t extent = 1;              // positions
  int64_t inner_elements = 1;      // elements under one position
  int64_t src_stride = 0;          // bytes between positions
  int64_t dst_stride = 0;
};

// Refers to the runs of the copy that it is made from, which must be one as strided_copy.h says.
struct CopyRegion {
  explicit CopyRegion(const StridedCopy& copy);

  const std::byte* src;
  std::byte* dst;
  int64_t piece_elements = 1;  // consecutive on both sides, under the last axis
  size_t axis_count = 0;
  std::array<RegionAxis, kMaxTensorDims> axes;

 private:
  void AddDimension(absl::Span<const Stretch> dimension, int64_t src_stride, int64_t dst_stride);
  void TakePiece(int64_t src_bytes, int64_t dst_bytes);
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_COPY_REGION_H_
