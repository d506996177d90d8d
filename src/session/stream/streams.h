// A session's data streams: opened between ranks, carried on, ended together.
#ifndef SLUICE_SRC_SESSION_STREAM_STREAMS_H_
#define SLUICE_SRC_SESSION_STREAM_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fair_lock.h"
#include "session/base/idle_wait.h"
#include "session/peers/peers.h"
#include "session/peers/watch.h"
#include "session/stream/stream_impl.h"
#include "session/stream/stream_start.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "sluice/testing.h"
#include "sluice/transport.h"
#include "storage/open/source_address.h"
#include "trace/joined_log.h"

namespace sluice {

// Thread: the session's, unless said otherwise.
class Streams final : private StreamDriver {
 public:
  struct Parts {
    Peers* peers = nullptr;
    const SessionOptions* options = nullptr;
    JoinedTraceLog* trace = nullptr;  // or null
    IdleWait* idle_wait = nullptr;    // where whoever drives the session pauses
    // A thread of the session's drives it, and all calls are made under this. Null: the caller
    // does.
    FairLock* lock = nullptr;
    // One round of progress of the whole session, or a pause; the poisoning error.
    std::function<absl::Status()> pump;
  };
  // All of `parts` must outlive this object, and this object the streams.
  explicit Streams(Parts parts) : parts_(std::move(parts)) {}
  ~Streams() override = default;

  // Collective. No run is in flight. Errors are those of OpenStream (sluice/stream.h).
  absl::StatusOr<std::unique_ptr<Stream>> Open(const StreamOptions& options,
                                               const InjectedDelay& delay);

  // One round of progress; true if anything moved. Failures end streams, not the session.
  bool Advance();
  void Fail(const absl::Status& status);
  // Carries streams that have failed on until nothing is under way. Call it again and again.
  void Settle();

  size_t open() const { return streams_.size(); }
  Awaited awaited() const;
  // When something is due, on MonotonicNs's clock; INT64_MAX: nothing is.
  int64_t next_due_ns() const;

 private:
  // The facts that the ranks have told each other before each opens its part.
  struct Meeting {
    std::string catalog_text;              // of a source with a uri
    std::vector<StreamRequest> requests;   // of all ranks
    std::unique_ptr<Transport> transport;  // null where nothing is exchanged
  };
  absl::StatusOr<Meeting> Meet(const StreamOptions& options,
                               const absl::StatusOr<SourceAddress>& address);
  absl::StatusOr<std::vector<StreamRequest>> GatherRequests(
      const StreamOptions& options, const absl::StatusOr<SourceAddress>& address);
  // This rank's part, without a word to the others.
  absl::StatusOr<std::unique_ptr<StreamImpl>> Make(StreamOptions options,
                                                   const InjectedDelay& delay,
                                                   const SourceAddress& address, int64_t begin_ns,
                                                   Meeting meeting);
  void AddTraces(StreamParts* stream) const;

  bool has_thread() const override { return parts_.lock != nullptr; }
  absl::Status Pump() override { return parts_.pump(); }
  void Wake() override { parts_.idle_wait->Wake(); }
  void RaiseAlarm(int number, const absl::Status& status) override;
  void Remove(StreamImpl* stream, const absl::Status& unfinished) override;

  Peers& peers() { return *parts_.peers; }

  const Parts parts_;
  std::vector<StreamImpl*> streams_;  // open
  int64_t opened_ = 0;
  int64_t known_ = 0;  // numbers below are in streams_, or have been
  // Alarms of streams that other ranks have opened, and failed, while this one is still about to.
  std::vector<Watch::StreamAlarm> early_alarms_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_STREAMS_H_
