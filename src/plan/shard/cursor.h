// A cursor: how far a stream has been consumed, as a text that any number of ranks can go on from.
#ifndef SLUICE_SRC_PLAN_SHARD_CURSOR_H_
#define SLUICE_SRC_PLAN_SHARD_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plan/released.h"
#include "plan/shard/stream_plan.h"

namespace sluice {

// The releases of one rank, or of all ranks after a merge.
struct Cursor {
  // Which order the positions are of.
  int64_t items = 1;
  bool shuffle = false;
  uint64_t seed = 0;
  int64_t block_items = 1;  // see EpochOrder
  // A fingerprint of what the items are; 0: not known.
  uint64_t data = 0;
  // First what the ranks of this job have released, then what those of the jobs before it had, as
  // far as that still counts. A part has places.
  std::vector<ReleasedLayer> layers;

  static constexpr size_t kBytesMax = size_t{256} << 10;

  // "sluice-cursor-2 items 100 ...". A text that would pass kBytesMax leaves out what was released
  // out of order, and then the jobs before: what is left out comes again.
  std::string ToText() const;
  // Takes texts of version 1 as well. InvalidArgument says what is wrong.
  static absl::StatusOr<Cursor> Parse(absl::string_view text);
};

// The positions released at all of the cursors that count them. The cursors are of one order; at
// least one. Each part costs what it costs alone, however far the ranks are apart.
absl::StatusOr<Cursor> MergeCursors(absl::Span<const Cursor> cursors);

// The releases of one rank, as they happen. Thread: one.
class ReleaseLog {
 public:
  // `order` says what the positions are of; its layers do not count: what is released before stands
  // in `plan`, which must outlive this object.
  ReleaseLog(const Cursor& order, const StreamPlan* plan);

  // A position of this rank; each at most once.
  void Release(int64_t position);

  Cursor cursor() const;

 private:
  int64_t PositionOf(int64_t index) const { return own_.places.PositionOf(index, order_.items); }
  int64_t NextIndex(int64_t index) const;
  bool TakeOver();

  Cursor order_;
  const StreamPlan* plan_;
  ReleasedPart own_;
  bool needs_plan_ = false;  // what was released before is not all in own_
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_SHARD_CURSOR_H_
