// One rank's trace, of as many recorders as there are threads that record, and of the names of
// their tracks.
#ifndef SLUICE_SRC_TRACE_JOINED_LOG_H_
#define SLUICE_SRC_TRACE_JOINED_LOG_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "base/fair_lock.h"
#include "sluice/trace.h"
#include "trace/recorder.h"

namespace sluice {

// Gives a recorder back to its log, which lends it again. Any thread.
struct ReturnRecorder {
  std::atomic<bool>* lent = nullptr;
  void operator()(TraceRecorder*) const { lent->store(false, std::memory_order_release); }
};
using LentRecorder = std::unique_ptr<TraceRecorder, ReturnRecorder>;

// Thread: one, while each recorder is used by a thread of its own. TraceLog's functions take
// `lock`, under which others record; null: nobody else records in what they read.
class JoinedTraceLog final : public TraceLog {
 public:
  explicit JoinedTraceLog(int rank, FairLock* lock = nullptr);

  // A recorder for one thread, of `capacity` events; lives as long as the log.
  TraceRecorder* AddRecorder(int64_t capacity);
  // The same for a while: one that was given back, with what it has recorded, or a new one. So a
  // log has as many as were ever lent at once. To be given back before the log ends.
  LentRecorder LendRecorder(int64_t capacity);

  // The number of a new track for what streams record: "consumer", "stream 0, slot 3". Tracks of
  // the slots of transfers are there without. Recorders may share a track if their spans on it do
  // not overlap.
  int AddTrack(absl::string_view name);

  // The number of a tensor's name, for TraceStage; the same for the same name.
  int32_t NumberOf(absl::string_view tensor);

  int rank() const override { return rank_; }
  int64_t capacity() const override;
  int64_t size() const override;
  int64_t dropped() const override;
  std::string Serialize() const override;
  void Clear() override;  // keeps recorders, tracks and names

 private:
  struct Recorder {
    explicit Recorder(int64_t capacity) : recorder(capacity) {}
    TraceRecorder recorder;
    std::atomic<bool> lent = true;  // or in use for good
  };

  const int rank_;
  FairLock* const lock_;
  std::vector<std::unique_ptr<Recorder>> recorders_;
  std::vector<std::string> tracks_;
  std::vector<std::string> tensors_;
  absl::flat_hash_map<std::string, int32_t> tensor_numbers_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRACE_JOINED_LOG_H_
