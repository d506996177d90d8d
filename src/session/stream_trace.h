// What a stream does, in the trace of its session: one part for the thread that makes progress, one
// for the consumer's.
#ifndef SLUICE_SRC_SESSION_STREAM_TRACE_H_
#define SLUICE_SRC_SESSION_STREAM_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "session/delivery.h"
#include "session/shard_runner.h"
#include "trace/joined_log.h"

namespace sluice {

// The session's side. A track for each slot, with what went on in it, and one for items.
class StageTrace {
 public:
  // `log` must outlive this object. Buckets of epochs from `epochs` on are not recorded; -1: all
  // are.
  StageTrace(JoinedTraceLog* log, int64_t capacity, int stream, int slots, int64_t epochs);

  void Stage(TraceKind kind, size_t slot, const ShardPiece& piece, int64_t begin_ns,
             int64_t end_ns);
  // From the first read to the delivery.
  void Item(int64_t epoch, int64_t item, int64_t bytes, int64_t begin_ns, int64_t end_ns);
  void Sample(int64_t now_ns, int buckets, int64_t bytes) {
    recorder_->StreamSample(now_ns, stream_track_, buckets, bytes);
  }

 private:
  bool Wants(int64_t epoch) const { return epochs_ < 0 || epoch < epochs_; }

  const LentRecorder recorder_;
  const int64_t epochs_;
  const int stream_track_;
  std::vector<int> slot_tracks_;
};

// The consumer's side. A track for its waits, one for its epochs, and one for each device buffer.
class ConsumerTrace {
 public:
  ConsumerTrace(JoinedTraceLog* log, int64_t capacity, int stream, int buffers, int64_t epochs);

  // It waited for the item that begins a batch.
  void Wait(const DeliveredItem& first, int64_t begin_ns, int64_t end_ns);
  // It held a buffer with these items.
  void Consume(int buffer, absl::Span<const DeliveredItem> items, int64_t begin_ns, int64_t end_ns);
  // Nothing more will be taken.
  void End(int64_t now_ns);

 private:
  bool Wants(int64_t epoch) const { return epochs_ < 0 || epoch < epochs_; }

  const LentRecorder recorder_;
  const int64_t epochs_;
  const int wait_track_;
  const int epoch_track_;
  std::vector<int> buffer_tracks_;
  int64_t epoch_ = -1;  // the one that is being consumed
  int64_t epoch_begin_ns_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_TRACE_H_
