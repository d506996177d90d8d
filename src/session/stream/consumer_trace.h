// What a stream's consumer does, in the trace of its session.
#ifndef SLUICE_SRC_SESSION_STREAM_CONSUMER_TRACE_H_
#define SLUICE_SRC_SESSION_STREAM_CONSUMER_TRACE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "session/stream/delivery.h"
#include "trace/joined_log.h"

namespace sluice {

// A track for its waits, one for its epochs, and one for each device buffer. Thread: the
// consumer's.
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
  bool Wants(int64_t epoch) const { return epoch < epochs_; }

  const LentRecorder recorder_;
  const int64_t epochs_;
  const int wait_track_;
  const int epoch_track_;
  std::vector<int> buffer_tracks_;
  int64_t epoch_ = -1;  // the one that is being consumed
  int64_t epoch_begin_ns_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_CONSUMER_TRACE_H_
