// Asks for rows before they are read.
#ifndef SLUICE_SRC_DEVICE_PREFETCHER_H_
#define SLUICE_SRC_DEVICE_PREFETCHER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace sluice {

inline constexpr int64_t kCacheLineBytes = 64;

// Runs kDistanceBytes ahead of whoever reads rows by segments, and asks for what it will read.
// Hardware does that within a page of a row, but each row begins it anew, which halves the rate of
// rows of a few KiB.
class Prefetcher {
 public:
  // `rows` rows of `row_bytes` (at least 1), `stride` bytes apart.
  Prefetcher(const std::byte* src, int64_t rows, int64_t stride, int64_t row_bytes,
             int64_t segment_bytes)
      : row_(src + kDistanceBytes / row_bytes * stride),
        stride_(stride),
        row_bytes_(row_bytes),
        segment_bytes_(segment_bytes),
        offset_(kDistanceBytes % row_bytes),
        rows_left_(rows - kDistanceBytes / row_bytes) {}

  // Asks for the next segment, or what is left of a row.
  void Next() {
    if (rows_left_ <= 0) return;
    const int64_t end = std::min(offset_ + segment_bytes_, row_bytes_);
    for (int64_t at = offset_; at < end; at += kCacheLineBytes) __builtin_prefetch(row_ + at);
    offset_ = end;
    if (offset_ < row_bytes_) return;
    offset_ = 0;
    row_ += stride_;
    --rows_left_;
  }

 private:
  static constexpr int64_t kDistanceBytes = 4 << 10;

  const std::byte* row_;
  int64_t stride_;
  int64_t row_bytes_;
  int64_t segment_bytes_;
  int64_t offset_;
  int64_t rows_left_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_PREFETCHER_H_
