// One entry of a trace, as recorded.
#ifndef SLUICE_SRC_TRACE_TRACE_EVENT_H_
#define SLUICE_SRC_TRACE_TRACE_EVENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plan/bucket.h"

namespace sluice {

// The kind of an event. The values travel between ranks: add at the end.
enum class TraceKind : uint8_t {
  kSample,  // no span: how much was in flight at begin_ns
  // Stages of a transfer's bucket, on the track of its slot.
  kFill,
  kMove,
  kDrain,
  // Work of a stream, on tracks with names.
  kEpoch,
  kItem,          // from its first read to its release; items overlap
  kConsume,       // a consumer holds a lease
  kConsumerWait,  // a consumer waits for an item
  kStorageRead,
  kDeviceCopy,
  kExchange,      // with other ranks
  kStreamSample,  // no span: how much of a stream was in flight at begin_ns
};
inline constexpr TraceKind kLastTraceKind = TraceKind::kStreamSample;

// True for what has a beginning and an end.
constexpr bool IsSpan(TraceKind kind) {
  return kind != TraceKind::kSample && kind != TraceKind::kStreamSample;
}
// True for spans on the track of a transfer's slot.
constexpr bool IsStage(TraceKind kind) {
  return kind == TraceKind::kFill || kind == TraceKind::kMove || kind == TraceKind::kDrain;
}

// The kind's name on a track: "fill", "storage_read". Not for samples.
const char* TraceKindName(TraceKind kind);

// Times lie in this range on both sides of 0, over 70 years, so that they can be shifted and
// subtracted.
inline constexpr int64_t kTraceTimeEndNs = int64_t{1} << 61;

// The tensors of a stage's bucket, and whom the bytes of its move come from and go to.
struct TraceStage {
  int32_t tensor = -1;  // the number of its first tensor's name in the log; below 0: not known
  int32_t tensors = 0;  // how many it has
  int32_t from = -1;    // the rank that this rank receives from; below 0: none
  int32_t to = -1;      // the rank that gets this rank's contribution to a sum; below 0: none

  friend bool operator==(const TraceStage&, const TraceStage&) = default;
};

struct TraceEvent {
  BucketId id = {};  // of a stage, and of a stream's span if has_id
  int64_t begin_ns = 0;
  int64_t end_ns = 0;  // not before begin_ns
  int64_t bytes = 0;   // of the bucket or item; of a sample: staging bytes in flight
  int64_t item = -1;   // of a stream's span; below 0: none. See stage()
  int32_t count = 0;   // of a stage: the slot; of a sample: buckets in flight
  int32_t track = 0;   // of what a stream records
  int32_t epoch = -1;  // of a stream's span; below 0: none
  bool has_id = false;
  TraceKind kind = TraceKind::kSample;

  // Stages keep these in fields that streams' spans use otherwise, so that events stay small.
  void set_stage(const TraceStage& stage) {
    item = stage.tensor < 0 ? -1 : int64_t{stage.tensors} << 32 | stage.tensor;
    track = stage.from + 1;
    epoch = stage.to;
  }
  TraceStage stage() const {
    return {.tensor = item < 0 ? -1 : static_cast<int32_t>(item & INT32_MAX),
            .tensors = item < 0 ? 0 : static_cast<int32_t>(item >> 32),
            .from = track - 1,
            .to = epoch};
  }

  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

// A rank's record at rest.
struct TraceContent {
  int rank = 0;
  int64_t dropped = 0;
  std::vector<std::string> tracks;   // their names, by number
  std::vector<std::string> tensors;  // their names, by number
  std::vector<TraceEvent> events;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRACE_TRACE_EVENT_H_
