// Records the slots of a data stream or a load in the trace of its session.
#ifndef SLUICE_SRC_SESSION_SHARD_STAGE_TRACE_H_
#define SLUICE_SRC_SESSION_SHARD_STAGE_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "session/shard/shard_runner.h"
#include "trace/joined_log.h"

namespace sluice {

// A track for each slot, with what went on in it, and one for items. Thread: the one that makes
// progress.
class StageTrace {
 public:
  // `log` must outlive this object. Buckets of epochs from `epochs` on are not recorded.
  StageTrace(JoinedTraceLog* log, int64_t capacity, int stream, int slots, int64_t epochs);

  void Stage(TraceKind kind, size_t slot, const ShardPiece& piece, int64_t begin_ns,
             int64_t end_ns);
  // From the first read to the delivery.
  void Item(int64_t epoch, int64_t item, int64_t bytes, int64_t begin_ns, int64_t end_ns);
  // Not once buckets of a later epoch have ended.
  void Sample(int64_t now_ns, int buckets, int64_t bytes) {
    if (left_out_ == 0 && epochs_ > 0) {
      recorder_->StreamSample(now_ns, stream_track_, buckets, bytes);
    }
  }
  // Spans of epochs from `epochs` on.
  int64_t left_out() const { return left_out_; }

 private:
  bool Wants(int64_t epoch) {
    if (epoch >= epochs_) ++left_out_;
    return epoch < epochs_;
  }

  const LentRecorder recorder_;
  const int64_t epochs_;
  const int stream_track_;
  std::vector<int> slot_tracks_;
  int64_t left_out_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SHARD_STAGE_TRACE_H_
