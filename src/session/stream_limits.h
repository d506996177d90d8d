// What a stream's budget comes to: how many slots, of what size, and pieces of what size.
#ifndef SLUICE_SRC_SESSION_STREAM_LIMITS_H_
#define SLUICE_SRC_SESSION_STREAM_LIMITS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "session/stream_items.h"
#include "sluice/stream.h"

namespace sluice {

struct StreamLimits {
  int64_t piece_bytes = 0;
  int64_t block_bytes = 0;  // memory of one slot: a piece, rounded to the source's alignment
  int slots = 0;
  int spares = 0;          // blocks for hedges
  int64_t cell_bytes = 0;  // device memory of one item
  int64_t buffer_bytes = 0;
};

// InvalidArgument where the budget does not hold what a stream needs at least: names the floor, and
// what it is made of. `alignment` is the source's; `whole_items`: it cannot give parts of items.
absl::StatusOr<StreamLimits> ResolveStreamLimits(const StreamOptions& options,
                                                 const StreamItems& items, int64_t alignment,
                                                 bool whole_items);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_LIMITS_H_
