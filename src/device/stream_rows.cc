// Whole cache lines by streaming stores, what is left at both ends of a row by plain ones; compiled
// for several instruction sets.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/stream_rows.cc"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/copy_rows.h"
#include "device/prefetcher.h"
#include "device/stream_rows.h"

#ifndef SLUICE_SRC_DEVICE_STREAM_ROWS_CC_ONCE_
#define SLUICE_SRC_DEVICE_STREAM_ROWS_CC_ONCE_
namespace sluice {
namespace {

constexpr auto kLineBytes = static_cast<size_t>(kCacheLineBytes);

// Between two calls of the prefetcher, which cost as much as a line or two.
constexpr size_t kSegmentBytes = 256;

}  // namespace
}  // namespace sluice
#endif  // SLUICE_SRC_DEVICE_STREAM_ROWS_CC_ONCE_

HWY_BEFORE_NAMESPACE();
namespace sluice {
namespace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A line is written whole and at once: its parts meet in a write buffer, of which there are few.
HWY_INLINE void StreamLine(const uint8_t* src, uint8_t* dst) {
  const hn::CappedTag<uint8_t, kLineBytes> d;
  const size_t step = hn::Lanes(d);
  for (size_t i = 0; i < kLineBytes; i += step) hn::Stream(hn::LoadU(d, src + i), d, dst + i);
}

HWY_INLINE void StreamRow(const uint8_t* src, uint8_t* dst, size_t bytes, Prefetcher* prefetcher) {
  const size_t past = reinterpret_cast<uintptr_t>(dst) % kLineBytes;
  const size_t head = std::min(bytes, (kLineBytes - past) % kLineBytes);
  std::memcpy(dst, src, head);
  size_t at = head;
  for (size_t segment = 0; segment < bytes; segment += kSegmentBytes) {
    prefetcher->Next();
    const size_t end = std::min(segment + kSegmentBytes, bytes);
    for (; at + kLineBytes <= end; at += kLineBytes) StreamLine(src + at, dst + at);
  }
  std::memcpy(dst + at, src + at, bytes - at);
}

void Rows(const std::byte* src, std::byte* dst, const CopyAxis& axis, int64_t piece_bytes) {
  const auto* from = reinterpret_cast<const uint8_t*>(src);
  auto* to = reinterpret_cast<uint8_t*>(dst);
  Prefetcher prefetcher(src, axis.count, axis.src_stride, piece_bytes, kSegmentBytes);
  for (int64_t i = 0; i < axis.count; ++i) {
    StreamRow(from, to, static_cast<size_t>(piece_bytes), &prefetcher);
    from += axis.src_stride;
    to += axis.dst_stride;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace sluice
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {
namespace {

// From here on streaming was measured to be faster on Zen 3 (docs/notes.md).
constexpr int64_t kWholeLinesBytesMin = 128;
constexpr int64_t kPartialLinesBytesMin = 1 << 10;
constexpr int64_t kDenseFactor = 8;

HWY_EXPORT(Rows);

}  // namespace

void StreamRows(const std::byte* src, std::byte* dst, const CopyAxis& axis, int64_t piece_bytes) {
  HWY_DYNAMIC_DISPATCH(Rows)(src, dst, axis, piece_bytes);
}

bool StreamingPays(const std::byte* dst, const CopyAxis& axis, int64_t piece_bytes) {
  const bool dense = axis.count == 1 || axis.dst_stride == piece_bytes;
  const bool whole_lines = reinterpret_cast<uintptr_t>(dst) % kLineBytes == 0 &&
                           piece_bytes % kCacheLineBytes == 0 &&
                           axis.dst_stride % kCacheLineBytes == 0;
  const int64_t least = whole_lines ? kWholeLinesBytesMin : kPartialLinesBytesMin;
  return piece_bytes >= (dense ? least * kDenseFactor : least);
}

void StreamFence() { hwy::FlushStream(); }

}  // namespace sluice
#endif  // HWY_ONCE
