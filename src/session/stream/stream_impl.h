// One rank's end of a stream: the session's side, which makes progress, and the consumer's, which
// takes and releases.
#ifndef SLUICE_SRC_SESSION_STREAM_STREAM_IMPL_H_
#define SLUICE_SRC_SESSION_STREAM_STREAM_IMPL_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/shard/cursor.h"
#include "plan/shard/stream_plan.h"
#include "session/base/fork_guard.h"
#include "session/shard/shard_runner.h"
#include "session/shard/stage_trace.h"
#include "session/stream/consumer_share.h"
#include "session/stream/consumer_trace.h"
#include "session/stream/delivery.h"
#include "session/stream/device_cells.h"
#include "session/stream/generate_gate.h"
#include "session/stream/lent_leases.h"
#include "session/stream/stream_items.h"
#include "session/stream/stream_limits.h"
#include "session/stream/stream_work.h"
#include "sluice/stream.h"
#include "storage/generator_source.h"
#include "storage/source.h"
#include "transport/say_once.h"

namespace sluice {

class StreamImpl;

// The calls that a stream makes of its session.
class StreamDriver {
 public:
  virtual ~StreamDriver() = default;
  // True if a thread of the session's makes progress, so that the consumer may sleep.
  virtual bool has_thread() const = 0;
  // One round of progress of the whole session, by the consumer's thread, or a short pause if
  // nothing moved. Not with a thread. The session's poisoning error.
  virtual absl::Status Pump() = 0;
  // Something can go on: wakes the thread, if there is one and it sleeps. Any thread.
  virtual void Wake() = 0;
  // Tells the other ranks that stream `number` has failed here.
  virtual void RaiseAlarm(int number, const absl::Status& status) = 0;
  // The stream is being destroyed; `unfinished` is not OK if before its end. Any thread.
  virtual void Remove(StreamImpl* stream, const absl::Status& unfinished) = 0;
};

// The parts of a stream, as OpenStream has worked them out.
struct StreamParts {
  int number = 0;  // among the session's streams, equal on all ranks
  int rank = 0;
  StreamOptions options;
  StreamLimits limits;
  std::unique_ptr<StreamItems> items;
  std::unique_ptr<Source> source;
  GeneratorSource* generator = nullptr;  // within `source`, if that is one
  std::unique_ptr<StreamPlan> plan;
  Cursor order;
  std::unique_ptr<Device> device;
  int32_t device_ordinal = 0;
  std::unique_ptr<Transport> transport;  // null where nothing is exchanged
  int sharers_max = 1;
  int64_t begin_ns = 0;
  // Null: nothing is recorded.
  std::unique_ptr<StageTrace> stage_trace;
  std::unique_ptr<ConsumerTrace> consumer_trace;
};

class StreamImpl final : public Stream, private Delivery::Listener {
 public:
  // ResourceExhausted if there is no memory. `driver` must outlive the stream.
  static absl::StatusOr<std::unique_ptr<StreamImpl>> Make(StreamParts parts, StreamDriver* driver);
  ~StreamImpl() override;

  absl::StatusOr<Lease> Next() override;
  bool Ready() const override { return delivery_->state() != Delivery::State::kNotReady; }
  void EndUpdate() override;
  int64_t items() const override { return parts_.plan->CountToCome(); }
  std::string Cursor() const override { return releases_.cursor().ToText(); }
  StreamStats stats() const override;

  // ---- The session's thread.

  int number() const { return parts_.number; }
  int64_t piece_bytes() const { return parts_.limits.piece_bytes; }
  // The session knows it from now on, and hears when it is destroyed.
  void Opened() { opened_ = true; }
  // True if anything moved. Failures end the stream, not the session.
  bool Advance(int64_t now_ns);
  // Ends the stream with an error from outside: another rank's, or the session's.
  void Fail(const absl::Status& status);
  // After a failure: goes on until nothing is under way any more; true then.
  bool Settle();
  bool ended() const { return ended_; }
  bool is_exchanged() const { return parts_.sharers_max > 1; }
  int ready_fd() const { return parts_.source->ready_fd(); }
  // True while something moves that is heard only by asking.
  bool needs_polls() const {
    return runner_->has_messages() || runner_->has_copies() || delivery_->waits_for_device();
  }
  int64_t next_due_ns() const { return runner_->next_due_ns(); }

 private:
  StreamImpl(StreamParts parts, StreamDriver* driver, std::shared_ptr<Delivery> delivery);

  void Releasing(int buffer, absl::Span<const DeliveredItem> items) override;
  void Released() override { driver_->Wake(); }
  void CheckTimeout(int64_t now_ns);
  // Fails here, and tells the ranks that share the stream.
  void FailEverywhere(const absl::Status& status);
  void TakeStats();
  absl::StatusOr<Lease> TakeReady();
  absl::Status WaitUntilReady();

  const ForkGuard fork_guard_;
  StreamParts parts_;
  StreamDriver* const driver_;
  const std::shared_ptr<Delivery> delivery_;
  DeviceCells cells_;
  StreamWork work_;
  std::unique_ptr<ShardRunner> runner_;
  bool opened_ = false;
  bool ended_ = false;
  bool failed_ = false;                 // it ended so
  bool settled_ = false;                // nothing is under way since
  LongWait long_wait_;                  // of the consumer
  int64_t moved_ns_ = parts_.begin_ns;  // when it was last carried on

  // The consumer's.
  ReleaseLog releases_;
  int64_t items_delivered_ = 0;
  GenerateGate gate_;  // of a generator
  ConsumerShare share_;
  int64_t taken_ns_ = 0;  // when Next last returned
  int64_t waiting_ns_ = 0;
  int64_t consuming_ns_ = 0;
  int64_t first_item_ns_ = 0;
  std::vector<int64_t> buffer_taken_ns_;  // by device buffer
  LentLeases lent_;

  mutable std::mutex stats_mutex_;  // not taken by Next or releases
  StreamStats session_stats_;       // the session's side
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_STREAM_IMPL_H_
