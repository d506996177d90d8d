// Copies part of a region between two strided arrangements of its elements. Casts each element on
// the way where the two sides differ in type.
//
// A region is a product of index lists, one per dimension. Along each dimension it is given as
// runs: stretches that are consecutive on both sides. Elements are numbered row-major through the
// lists; that is the order of bytes on the wire. A side may be tensor memory or a wire buffer.
#ifndef SLUICE_SRC_DEVICE_STRIDED_COPY_H_
#define SLUICE_SRC_DEVICE_STRIDED_COPY_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "device/stores.h"
#include "sluice/tensor.h"
#include "tensor/contiguity.h"
#include "tensor/stretch.h"

namespace sluice {

struct StridedCopy {
  int dims = 1;                                                // 1 .. kMaxTensorDims
  std::array<absl::Span<const Stretch>, kMaxTensorDims> runs;  // in element order, not empty
  std::array<int64_t, kMaxTensorDims> src_strides{};           // bytes between positions
  std::array<int64_t, kMaxTensorDims> dst_strides{};
  const std::byte* src = nullptr;  // address of position (0, 0, ...)
  std::byte* dst = nullptr;
  DType src_dtype = DType::kU8;  // CastExists(src_dtype, dst_dtype)
  DType dst_dtype = DType::kU8;
  int64_t begin = 0;  // elements [begin, end) of the region are copied
  int64_t end = 0;
  WriteHint stores = WriteHint::kAuto;  // on the host
  // Which memory each side is, for devices that have memory of their own.
  DeviceKind src_kind = DeviceKind::kCpu;
  DeviceKind dst_kind = DeviceKind::kCpu;
};

// Carries out one copy. Between equal types it moves bytes and looks at none. Otherwise it casts as
// cast_rows.h says. The two sides must not overlap. Allocates nothing. Whatever its stores, they
// come before all that this thread stores from then on.
void CopyStrided(const StridedCopy& copy);

// One side of a copy, as tensor/contiguity.h sees it. Refers to `copy`.
RegionSide SrcSide(const StridedCopy& copy);
RegionSide DstSide(const StridedCopy& copy);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_STRIDED_COPY_H_
