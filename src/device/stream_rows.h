// Copies of rows of bytes with streaming stores, which go to memory past the cache.
#ifndef SLUICE_SRC_DEVICE_STREAM_ROWS_H_
#define SLUICE_SRC_DEVICE_STREAM_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "device/copy_rows.h"

namespace sluice {

// Copies `axis.count` pieces of `piece_bytes` each, of any alignment. Source and destination must
// not overlap. Other threads see all of it only after a StreamFence() and what then publishes it.
void StreamRows(const std::byte* src, std::byte* dst, const CopyAxis& axis, int64_t piece_bytes);

// True if rows that end up there are copied or cast faster with streaming stores, the cache being
// too small for what is written. Streamed lines meet in a few write buffers, and want to be written
// whole and one after the other. Longer rows are needed where some lines are written in part. They
// are also needed where the destination has no gaps: one dense stretch is what plain stores do
// best.
bool StreamingPays(const std::byte* dst, const CopyAxis& axis, int64_t piece_bytes);

// Puts the streaming stores of this thread before all that it stores from now on.
void StreamFence();

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_STREAM_ROWS_H_
