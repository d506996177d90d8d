// One read of a file in progress: which bytes to ask for next. Pure.
#ifndef SLUICE_SRC_STORAGE_FILE_FILE_READ_H_
#define SLUICE_SRC_STORAGE_FILE_FILE_READ_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "storage/source.h"

namespace sluice {

class FileRead {
 public:
  enum class Step {
    kDone,  // all bytes of the op are there
    kMore,  // ask for the next ones
    kEnd,   // the file ends before the op does
  };

  // Begins anew. Offsets and lengths are rounded to `alignment`, a power of two up to
  // kReadAlignment.
  void Begin(const ReadOp& op, int64_t alignment) {
    op_ = op;
    alignment_ = alignment;
    begin_ = op.offset / alignment * alignment;
    done_ = 0;
  }

  const ReadOp& op() const { return op_; }
  int64_t alignment() const { return alignment_; }
  int64_t skew() const { return op_.offset - begin_; }

  // The next bytes to ask for.
  int64_t offset() const { return begin_ + done_; }
  std::byte* data() const { return op_.data + done_; }
  uint32_t bytes() const {
    // Linux reads at most 2 GiB less a page; this is a multiple of every alignment.
    constexpr int64_t kMax = 1 << 30;
    return static_cast<uint32_t>(
        std::min(kMax, ReadRoom(op_.offset, op_.bytes, alignment_) - done_));
  }

  // Takes note of `count` bytes, at least 0, that have come.
  Step Advance(int64_t count) {
    done_ += count;
    if (done_ >= skew() + op_.bytes) return Step::kDone;
    // Only where the file ends is less than a whole block read.
    if (count == 0 || done_ % alignment_ != 0) return Step::kEnd;
    return Step::kMore;
  }

 private:
  ReadOp op_;
  int64_t alignment_ = 1;
  int64_t begin_ = 0;  // in the file; where the first byte of memory comes from
  int64_t done_ = 0;   // bytes from there on
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_FILE_READ_H_
