// Records a stream's consumer in the trace of its session.
#ifndef SLUICE_SRC_SESSION_STREAM_CONSUMER_TRACE_H_
#define SLUICE_SRC_SESSION_STREAM_CONSUMER_TRACE_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "session/stream/delivery.h"
#include "trace/joined_log.h"

namespace sluice {

// A track for its waits, one for its epochs, and one for each device buffer. Thread: the
// consumer's.
class ConsumerTrace {
 public:
  // `memory` says where buffers are: "device".
  ConsumerTrace(JoinedTraceLog* log, int64_t capacity, int stream, int buffers, int64_t epochs,
                absl::string_view memory);

  // It waited for the item that begins a batch.
  void Wait(const DeliveredItem& first, int64_t begin_ns, int64_t end_ns);
  // It held a buffer with these items.
  void Consume(int buffer, absl::Span<const DeliveredItem> items, int64_t begin_ns, int64_t end_ns);
  // Nothing more will be taken.
  void End(int64_t now_ns);
  // Spans of epochs from `epochs` on.
  int64_t left_out() const { return left_out_; }

 private:
  bool Wants(int64_t epoch) {
    if (epoch >= epochs_) ++left_out_;
    return epoch < epochs_;
  }

  const LentRecorder recorder_;
  const int64_t epochs_;
  const int wait_track_;
  const int epoch_track_;
  std::vector<int> buffer_tracks_;
  int64_t left_out_ = 0;
  int64_t epoch_ = -1;  // the one that is being consumed
  int64_t epoch_begin_ns_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_CONSUMER_TRACE_H_
