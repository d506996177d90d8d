// Keeps a bounded number of trace events of one thread of control. Recording allocates nothing,
// takes no lock and reads no clock: times are the caller's, of one monotonic clock.
#ifndef SLUICE_SRC_TRACE_RECORDER_H_
#define SLUICE_SRC_TRACE_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "plan/bucket.h"
#include "tensor/check.h"
#include "trace/trace_event.h"

namespace sluice {

// Which item of which epoch a span is about; below 0: of none.
struct TraceItem {
  int64_t item = -1;
  int32_t epoch = -1;
};

// Threads: one records, and another one (or the same) reads and clears at the same time. Each event
// is seen whole or not at all.
class TraceRecorder {
 public:
  // `capacity` events, at least 1; touches their memory now, so that no page faults come later.
  explicit TraceRecorder(int64_t capacity);

  // Records: one thread.

  // A stage of a transfer's bucket in a slot, from begin_ns to end_ns (not before begin_ns).
  void Span(TraceKind kind, const BucketId& id, int slot, int64_t bytes, int64_t begin_ns,
            int64_t end_ns, const TraceStage& stage = {}) {
    SLUICE_CHECK(begin_ns <= end_ns, "a span ends before it begins");
    SLUICE_CHECK(slot >= 0 && IsStage(kind), "a span has a slot");
    TraceEvent event = {.id = id,
                        .begin_ns = begin_ns,
                        .end_ns = end_ns,
                        .bytes = bytes,
                        .count = slot,
                        .kind = kind};
    event.set_stage(stage);
    Add(event);
  }

  // Records a stream's span on a track that the log has given a number. Spans of one track must not
  // overlap, except items.
  void Span(TraceKind kind, int track, const TraceItem& item, int64_t bytes, int64_t begin_ns,
            int64_t end_ns) {
    Add(StreamSpan(kind, track, item, bytes, begin_ns, end_ns));
  }

  // The same for a span that is one bucket's.
  void Span(TraceKind kind, int track, const TraceItem& item, const BucketId& id, int64_t bytes,
            int64_t begin_ns, int64_t end_ns) {
    TraceEvent event = StreamSpan(kind, track, item, bytes, begin_ns, end_ns);
    event.id = id;
    event.has_id = true;
    Add(event);
  }

  // Records what transfers have in flight at `now_ns`, if the last sample differs.
  void Sample(int64_t now_ns, int buckets, int64_t staging_bytes) {
    Change({.begin_ns = now_ns, .end_ns = now_ns, .bytes = staging_bytes, .count = buckets},
           &last_sample_);
  }

  // The same of a stream; the track's name becomes the counters'. A recorder serves one stream, or
  // keeps more samples than it needs.
  void StreamSample(int64_t now_ns, int track, int buckets, int64_t staging_bytes) {
    SLUICE_CHECK(track >= 0, "a sample of a stream has a track");
    Change({.begin_ns = now_ns,
            .end_ns = now_ns,
            .bytes = staging_bytes,
            .count = buckets,
            .track = track,
            .kind = TraceKind::kStreamSample},
           &last_stream_sample_);
  }

  // Reads and clears: one thread.

  int64_t capacity() const { return static_cast<int64_t>(events_.size()); }
  int64_t dropped() const { return Cleared() ? 0 : dropped_.load(std::memory_order_relaxed); }
  // The events kept so far; valid until Clear.
  absl::Span<const TraceEvent> events() const {
    if (Cleared()) return {};
    return absl::MakeConstSpan(events_).first(size_.load(std::memory_order_acquire));
  }

  // Forgets everything. The room is there again with the next event.
  void Clear() { wanted_clears_.store(wanted_clears_.load(std::memory_order_relaxed) + 1); }

 private:
  static TraceEvent StreamSpan(TraceKind kind, int track, const TraceItem& item, int64_t bytes,
                               int64_t begin_ns, int64_t end_ns) {
    SLUICE_CHECK(begin_ns <= end_ns, "a span ends before it begins");
    SLUICE_CHECK(track >= 0 && IsSpan(kind) && !IsStage(kind), "a stream's span has a track");
    return {.begin_ns = begin_ns,
            .end_ns = end_ns,
            .bytes = bytes,
            .item = item.item,
            .track = track,
            .epoch = item.epoch,
            .kind = kind};
  }

  // True from a call of Clear until the recording thread has noticed.
  bool Cleared() const {
    return clears_.load(std::memory_order_acquire) !=
           wanted_clears_.load(std::memory_order_relaxed);
  }

  // Begins anew if that is wanted.
  void NoticeClear() {
    const int64_t wanted = wanted_clears_.load(std::memory_order_acquire);
    if (clears_.load(std::memory_order_relaxed) == wanted) return;
    size_.store(0, std::memory_order_relaxed);
    dropped_.store(0, std::memory_order_relaxed);
    last_sample_ = last_stream_sample_ = kNoSample;
    clears_.store(wanted, std::memory_order_release);
  }

  void Add(const TraceEvent& event) {
    NoticeClear();
    Keep(event);
  }

  // Keeps a sample that says something new.
  void Change(const TraceEvent& sample, TraceEvent* last) {
    NoticeClear();
    if (sample.count == last->count && sample.bytes == last->bytes && sample.track == last->track) {
      return;
    }
    *last = sample;
    Keep(sample);
  }

  void Keep(const TraceEvent& event) {
    const size_t size = size_.load(std::memory_order_relaxed);
    if (size == events_.size()) {
      dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    events_[size] = event;
    size_.store(size + 1, std::memory_order_release);
  }

  // Like no sample that is taken.
  static constexpr TraceEvent kNoSample = {.bytes = -1, .count = -1};

  std::vector<TraceEvent> events_;  // the first size_ are kept
  // Written by the recording thread.
  std::atomic<size_t> size_{0};
  std::atomic<int64_t> dropped_{0};
  std::atomic<int64_t> clears_{0};  // noticed
  TraceEvent last_sample_ = kNoSample;
  TraceEvent last_stream_sample_ = kNoSample;
  // Written by the reading thread.
  std::atomic<int64_t> wanted_clears_{0};
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRACE_RECORDER_H_
