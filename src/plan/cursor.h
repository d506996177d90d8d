// How far a stream has been consumed, as a short text that any number of ranks can go on from.
#ifndef SLUICE_SRC_PLAN_CURSOR_H_
#define SLUICE_SRC_PLAN_CURSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plan/stream_plan.h"

namespace sluice {

// What one rank, or after merging all ranks, have released.
struct Cursor {
  // Which order the positions are of.
  int64_t items = 1;
  bool shuffle = false;
  uint64_t seed = 0;
  PlaceSet places;  // of every epoch: whose releases are counted
  // Of these places, everything below `point.position` and in `point.done` is released.
  ResumePoint point;

  // More ranges than these are left out, and their items come again.
  static constexpr size_t kRangesMax = 16;
  static constexpr size_t kBytesMax = 1000;

  // "sluice-cursor 1 items 100 ..."; at most kBytesMax bytes.
  std::string ToText() const;
  // InvalidArgument says what is wrong.
  static absl::StatusOr<Cursor> Parse(absl::string_view text);

  bool Released(int64_t position) const {
    return !places.Has(position % items) || point.IsDone(position);
  }
};

// What is released at all of the cursors that count it. The cursors are of one order; at least one.
absl::StatusOr<Cursor> MergeCursors(absl::Span<const Cursor> cursors);

// The releases of one rank, as they happen. Thread: one.
class ReleaseLog {
 public:
  // `start`: what is released before. `plan` must outlive this object.
  ReleaseLog(const Cursor& start, const StreamPlan* plan) : cursor_(start), plan_(plan) {}

  // A position of this rank; each at most once.
  void Release(int64_t position);

  const Cursor& cursor() const { return cursor_; }

 private:
  Cursor cursor_;
  const StreamPlan* plan_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CURSOR_H_
