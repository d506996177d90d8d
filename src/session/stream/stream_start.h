// Computes where a stream begins from the selections and cursors of all ranks.
#ifndef SLUICE_SRC_SESSION_STREAM_STREAM_START_H_
#define SLUICE_SRC_SESSION_STREAM_STREAM_START_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plan/shard/cursor.h"
#include "plan/shard/stream_plan.h"
#include "sluice/stream.h"

namespace sluice {

// A rank's request: told to the others before anything of the stream is known.
struct StreamRequest {
  Selection selection;
  uint64_t cursor_hash = 0;
  std::string cursor;  // empty until it is known
};
// The request of this rank, as it goes to the others, without its cursor.
std::string StreamRequestText(const StreamOptions& options);
// FailedPrecondition if `rank`, which sent it, runs another build of Sluice.
absl::StatusOr<StreamRequest> ParseStreamRequest(absl::string_view text, int rank);

struct StreamStart {
  Cursor order;  // what positions are of, for the log of this rank's releases
  std::unique_ptr<StreamPlan> plan;
};

// `requests` of all ranks, with whole cursors. `data` is a fingerprint of the items, or 0.
// InvalidArgument where cursors are none, or not of this stream, and for more items than there can
// be.
absl::StatusOr<StreamStart> PlanStream(const StreamOptions& options, int64_t items, uint64_t data,
                                       int rank, absl::Span<const StreamRequest> requests);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_STREAM_START_H_
