// Reads ranges of objects as a whole, many at a time, and waits: headers, before anything moves.
#ifndef SLUICE_SRC_SESSION_SHARD_READ_RANGES_H_
#define SLUICE_SRC_SESSION_SHARD_READ_RANGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "session/base/own_work.h"
#include "sluice/stream.h"
#include "storage/source.h"

namespace sluice {

// So many ranges are read at once at most.
inline constexpr int kRangesAtOnceMax = 128;

struct RangeRead {
  int object = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
  std::string text;  // what was read
};

// `names` are of the source's objects, for messages. Tries again as `retry` says. Gives up
// once `stop` is set. The first error that stays, as MakeReadFailure has it. Any thread.
absl::Status ReadRanges(Source* source, const std::vector<std::string>& names,
                        const RetryOptions& retry, const WorkStop& stop,
                        absl::Span<RangeRead> ranges);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SHARD_READ_RANGES_H_
