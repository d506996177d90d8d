// Keeps a bounded number of trace events. Recording allocates nothing, takes no lock and reads no
// clock: times are the caller's, of one monotonic clock.
#ifndef SLUICE_SRC_TRACE_RECORDER_H_
#define SLUICE_SRC_TRACE_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/bucket.h"
#include "sluice/trace.h"
#include "tensor/check.h"
#include "trace/trace_event.h"

namespace sluice {

// Thread: one.
class TraceRecorder : public TraceLog {
 public:
  // `capacity` events, at least 1; touches their memory now, so that no page faults come later.
  TraceRecorder(int rank, int64_t capacity);

  // Something that went on with a bucket in a slot, from begin_ns to end_ns (not before begin_ns).
  void Span(TraceKind kind, const BucketId& id, int slot, int64_t bytes, int64_t begin_ns,
            int64_t end_ns) {
    SLUICE_CHECK(begin_ns <= end_ns, "a span ends before it begins");
    SLUICE_CHECK(slot >= 0, "a span has a slot");
    if (TraceEvent* const event = Take()) {
      *event = {.id = id,
                .begin_ns = begin_ns,
                .end_ns = end_ns,
                .bytes = bytes,
                .count = slot,
                .kind = kind};
    }
  }

  // What is in flight at `now_ns`. Kept only if it differs from the last one.
  void Sample(int64_t now_ns, int buckets, int64_t staging_bytes) {
    if (buckets == last_buckets_ && staging_bytes == last_bytes_) return;
    last_buckets_ = buckets;
    last_bytes_ = staging_bytes;
    if (TraceEvent* const event = Take()) {
      *event = {.begin_ns = now_ns, .end_ns = now_ns, .bytes = staging_bytes, .count = buckets};
    }
  }

  int rank() const override { return rank_; }
  int64_t capacity() const override { return static_cast<int64_t>(events_.size()); }
  int64_t size() const override { return static_cast<int64_t>(size_); }
  int64_t dropped() const override { return dropped_; }
  std::string Serialize() const override;
  void Clear() override;

 private:
  TraceEvent* Take() {
    if (size_ < events_.size()) return &events_[size_++];
    ++dropped_;
    return nullptr;
  }

  int rank_;
  std::vector<TraceEvent> events_;  // the first size_ are kept
  size_t size_ = 0;
  int64_t dropped_ = 0;
  int last_buckets_ = -1;
  int64_t last_bytes_ = -1;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRACE_RECORDER_H_
