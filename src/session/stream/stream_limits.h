// Computes from a stream's budget how many slots there are, their size, and the size of pieces.
#ifndef SLUICE_SRC_SESSION_STREAM_STREAM_LIMITS_H_
#define SLUICE_SRC_SESSION_STREAM_STREAM_LIMITS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "session/stream/stream_items.h"
#include "sluice/stream.h"

namespace sluice {

struct StreamLimits {
  int64_t piece_bytes = 0;
  int64_t block_bytes = 0;  // memory of one slot: a piece, rounded to the source's alignment
  int slots = 0;
  int spares = 0;          // blocks for hedges
  int window = 0;          // pieces that may be unfinished at once
  int64_t cell_bytes = 0;  // device memory of one item
  int64_t buffer_bytes = 0;
};

// This rank's share of a stream.
struct StreamShare {
  int64_t items_to_come = 0;  // of all epochs
  int sharers_max = 1;        // ranks that may need one item, this one among them
};

// InvalidArgument where the budget does not hold what a stream needs at least: names the floor, and
// what it is made of. `alignment` is the source's; `whole_items`: it cannot give parts of items.
// Ranks may come to different numbers of slots, never to different pieces.
absl::StatusOr<StreamLimits> ResolveStreamLimits(const StreamOptions& options,
                                                 const StreamItems& items, int64_t alignment,
                                                 bool whole_items, const StreamShare& share);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_STREAM_LIMITS_H_
