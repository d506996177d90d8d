// One entry of a trace, as recorded.
#ifndef SLUICE_SRC_TRACE_TRACE_EVENT_H_
#define SLUICE_SRC_TRACE_TRACE_EVENT_H_

#include <cstdint>
#include <vector>

#include "plan/bucket.h"

namespace sluice {

// What went on. The values travel between ranks: add at the end.
enum class TraceKind : uint8_t {
  kSample,  // no span: how much was in flight at begin_ns
  kFill,
  kMove,
  kDrain,
};
inline constexpr TraceKind kLastTraceKind = TraceKind::kDrain;

// What a track shows: "fill". Not for samples.
const char* TraceKindName(TraceKind kind);

// Times lie in this range on both sides of 0, over 70 years, so that they can be shifted and
// subtracted.
inline constexpr int64_t kTraceTimeEndNs = int64_t{1} << 61;

struct TraceEvent {
  BucketId id = {};  // of a span
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // not before begin_ns
  int64_t bytes = 0;   // of the bucket; of a sample: staging bytes in flight
  int32_t count = 0;   // the slot; of a sample: buckets in flight
  TraceKind kind = TraceKind::kSample;

  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

// A rank's record at rest.
struct TraceContent {
  int rank = 0;
  int64_t dropped = 0;
  std::vector<TraceEvent> events;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRACE_TRACE_EVENT_H_
