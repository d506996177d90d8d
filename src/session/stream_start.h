// Where a stream begins: what the selections and cursors of all ranks come to.
#ifndef SLUICE_SRC_SESSION_STREAM_START_H_
#define SLUICE_SRC_SESSION_STREAM_START_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plan/cursor.h"
#include "plan/stream_plan.h"
#include "sluice/stream.h"

namespace sluice {

// What each rank tells the others before anything of the stream is known: its selection and its
// cursor, and how long the text is that it has to pass on. `options` are checked.
std::string StreamRequestOf(const StreamOptions& options, int64_t text_bytes);
// The last one, of such a request.
int64_t TextBytesOf(absl::string_view request);

struct StreamStart {
  Cursor cursor;  // this rank's, before anything is released
  std::unique_ptr<StreamPlan> plan;
};

// `requests` of all ranks. InvalidArgument where cursors are none, or not of this stream.
absl::StatusOr<StreamStart> PlanStream(const StreamOptions& options, int64_t items, int rank,
                                       absl::Span<const std::string> requests);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_START_H_
