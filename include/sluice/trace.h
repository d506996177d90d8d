// The trace: when each bucket did what, as a file that Perfetto and chrome://tracing open.
//
// A session made with SessionOptions::trace_events > 0 keeps a TraceLog. Each rank's content
// travels as bytes to whoever writes the file:
//
//   TracePart part{.content = session->trace()->Serialize()};   // on every rank
//   // ... one rank gathers all parts, by whatever means the job has ...
//   absl::StatusOr<std::string> json = ChromeTrace(parts);
#ifndef SLUICE_TRACE_H_
#define SLUICE_TRACE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace sluice {

// One rank's record: spans (a stage of a bucket; what a stream does) and samples (what was in
// flight). Its memory is set aside at start, for each thread that records its own; when it is full,
// what comes later is counted and dropped. Each stream adds names of tracks, 1 to 2 KB. Owned by
// its session. Thread: the session's, also while others record.
class TraceLog {
 public:
  virtual ~TraceLog() = default;

  virtual int rank() const = 0;
  virtual int64_t capacity() const = 0;  // events
  virtual int64_t size() const = 0;      // events kept
  virtual int64_t dropped() const = 0;   // events that found no room

  // The content, for ChromeTrace, on this machine or another one. About 75 bytes per event.
  virtual std::string Serialize() const = 0;

  // Forgets everything, so that a later part of the program can be recorded.
  virtual void Clear() = 0;
};

// One rank's contribution to a file.
struct TracePart {
  std::string content;  // what Serialize returned
  int64_t clock_offset_ns =
      0;              // added to its times: ranks of one node share a clock, others differ
  std::string label;  // shown beside the rank's number, such as its node; may be empty
};

// The JSON text of all parts in one file. Each rank is a process. The process has a track for each
// slot, with the stages of the buckets that the slot held. A stage is called after its bucket's
// first tensor, such as "move layers.0.weight + 3" for 4 tensors. Arrows lead from the move of the
// rank that sent a bucket to those of the ranks that got it. A process has the counters "buckets in
// flight" and "bytes in flight". Streams have tracks and counters of their own. Their spans are
// epoch, consume, consumer_wait, storage_read, device_copy and exchange. Their items are events
// that may overlap. Times start at 0. InvalidArgument names a part that is no serialised log, and a
// rank that comes twice.
absl::StatusOr<std::string> ChromeTrace(absl::Span<const TracePart> parts);

// The same for one rank alone.
std::string ChromeTrace(const TraceLog& log);

}  // namespace sluice

#endif  // SLUICE_TRACE_H_
