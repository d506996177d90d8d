// Bytes in the memory of one process, as another process of the node finds them.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_PLACE_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_PLACE_H_

#include <algorithm>
#include <cstdint>

#include "sluice/transport.h"

namespace sluice {

// Bytes that the kernel copies at a time.
inline constexpr uint64_t kKernelPageBytes = 4096;

// Rows, as in TransportOp: `bytes` in all, one stretch if `row_bytes` is 0.
struct DirectRows {
  uint64_t bytes = 0;
  uint64_t row_bytes = 0;
  uint64_t stride_bytes = 0;

  static DirectRows Of(const TransportOp& op) { return {op.bytes, op.row_bytes, op.stride_bytes}; }

  // Bytes from the first one to behind the last one. The largest number if no memory is this long.
  uint64_t Extent() const {
    if (row_bytes == 0 || bytes == 0) return bytes;
    uint64_t extent = 0;
    if (__builtin_mul_overflow((bytes - 1) / row_bytes, stride_bytes, &extent) ||
        __builtin_add_overflow(extent, row_bytes, &extent)) {
      return ~uint64_t{0};
    }
    return extent;
  }

  // The offset of byte number `at` from the first one's place, and how many lie there in a stretch.
  uint64_t OffsetOf(uint64_t at) const {
    return row_bytes == 0 ? at : at / row_bytes * stride_bytes + at % row_bytes;
  }
  uint64_t StretchAt(uint64_t at) const {
    return row_bytes == 0 ? bytes - at : row_bytes - at % row_bytes;
  }
};

// The first byte: at an address of the owner's. If `segment` is not 0, `address` is an offset in
// the memory number `segment` that the owner shares.
struct DirectPlace {
  uint64_t address = 0;
  uint32_t segment = 0;
  DirectRows rows;
};

// Calls f(from_offset, to_offset, bytes) for bytes [begin, end), as they lie together on both
// sides, until it returns false.
template <typename F>
void ForEachStretch(const DirectRows& from, const DirectRows& to, uint64_t begin, uint64_t end,
                    F f) {
  for (uint64_t at = begin; at < end;) {
    const uint64_t bytes = std::min({from.StretchAt(at), to.StretchAt(at), end - at});
    if (!f(from.OffsetOf(at), to.OffsetOf(at), bytes)) return;
    at += bytes;
  }
}

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_PLACE_H_
