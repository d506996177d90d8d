// A random strided copy and what it must do, worked out one element at a time.
//
// The oracle of the copy tests: shares no code with the implementation. Elements are cast by
// float_oracle.h.
#ifndef SLUICE_TESTS_DEVICE_REFERENCE_COPY_H_
#define SLUICE_TESTS_DEVICE_REFERENCE_COPY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "device/strided_copy.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {

// A copy with the memory of both sides. The memory has `kGuardBytes` on either end that no position
// reaches. Not movable: `copy` points into it.
struct RandomCopy {
  static constexpr int64_t kGuardBytes = 64;

  explicit RandomCopy(uint64_t seed);
  RandomCopy(const RandomCopy&) = delete;
  RandomCopy& operator=(const RandomCopy&) = delete;

  // Byte offsets of each element of [copy.begin, copy.end) from position (0, 0, ...).
  std::vector<int64_t> SrcOffsets() const { return Offsets(&Stretch::src, copy.src_strides); }
  std::vector<int64_t> DstOffsets() const { return Offsets(&Stretch::dst, copy.dst_strides); }
  // What `dst_memory` must be afterwards.
  std::vector<std::byte> Expected() const;

  StridedCopy copy;
  std::array<std::vector<Stretch>, kMaxTensorDims> runs;
  std::vector<std::byte> src_memory;
  std::vector<std::byte> dst_memory;

 private:
  std::vector<int64_t> Offsets(int64_t Stretch::*first,
                               const std::array<int64_t, kMaxTensorDims>& strides) const;
  void ChooseTypes(std::mt19937_64& random);
  void ChooseRuns(std::mt19937_64& random);
  int64_t ChooseStrides(std::mt19937_64& random, int64_t Stretch::*first, bool may_repeat,
                        int64_t element_bytes, std::array<int64_t, kMaxTensorDims>* strides) const;
};

// A copy of a region that is whole along each dimension. Not movable: `copy` points into it.
struct BoxCopy {
  BoxCopy(DType dtype, const std::vector<int64_t>& sizes, const std::vector<int64_t>& src_strides,
          const std::vector<int64_t>& dst_strides);
  BoxCopy(const BoxCopy&) = delete;
  BoxCopy& operator=(const BoxCopy&) = delete;

  StridedCopy copy;  // without memory
  std::array<Stretch, kMaxTensorDims> runs;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_DEVICE_REFERENCE_COPY_H_
