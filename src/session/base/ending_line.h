// Buckets that have ended in stream order: all of their work has been started. Their slots are in
// use until the device has come to the work's end. Marks among the device's copies say when it has.
#ifndef SLUICE_SRC_SESSION_BASE_ENDING_LINE_H_
#define SLUICE_SRC_SESSION_BASE_ENDING_LINE_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "session/base/copy_queue.h"

namespace sluice {

// Buckets are known by their slots. Nothing is allocated but in Reserve.
class EndingLine {
 public:
  void Reserve(size_t slots);
  void Add(size_t slot) { slots_.push_back(slot); }

  // Puts a mark in the device's queue, if buckets have ended since the last mark and fewer than
  // kMarksMax marks are under way.
  absl::Status Mark(CopyQueue* copies);

  // The slots that the first mark under way is for. The device has come to it: DropFirst is next.
  absl::Span<const size_t> First() const;
  void DropFirst();

  int marks() const { return static_cast<int>(marks_.size()); }  // under way
  bool all_marked() const { return marked_ == slots_.size(); }

 private:
  // In order; the first `marked_` of them wait for marks, each for those up to it.
  std::vector<size_t> slots_;
  std::vector<size_t> marks_;  // in order: how many slots each is for
  size_t marked_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_ENDING_LINE_H_
