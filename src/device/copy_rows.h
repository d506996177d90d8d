// The inner loops of strided copies: many equal pieces of bytes at constant distances.
//
// Knows nothing of tensors, runs or elements; strided_copy.cc cuts copies into these.
#ifndef SLUICE_SRC_DEVICE_COPY_ROWS_H_
#define SLUICE_SRC_DEVICE_COPY_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "device/stores.h"

namespace sluice {

// One direction of a grid of pieces.
struct CopyAxis {
  int64_t count = 1;
  int64_t src_stride = 0;  // bytes
  int64_t dst_stride = 0;  // bytes
};

// Copies `axis.count` pieces of `piece_bytes` each. Source and destination must not overlap.
// kStreaming (never kAuto) asks for a StreamFence() afterwards, as stream_rows.h says.
void CopyRows(const std::byte* src, std::byte* dst, const CopyAxis& axis, int64_t piece_bytes,
              WriteHint stores);

// Copies rows.count x columns.count pieces, in an order that suits the caches: by tiles where one
// side is the other transposed.
void CopyGrid(const std::byte* src, std::byte* dst, const CopyAxis& rows, const CopyAxis& columns,
              int64_t piece_bytes, WriteHint stores);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_COPY_ROWS_H_
