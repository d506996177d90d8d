// How streams are driven, and what they ask of their session.
#include <algorithm>
#include <mutex>

#include "session/backoff.h"
#include "session/clock.h"
#include "session/session_impl.h"
#include "session/stream_impl.h"

namespace sluice {

// ---- What a stream asks for.

absl::Status SessionImpl::Pump() {
  if (!poison_.ok()) return Poll();
  const absl::StatusOr<bool> moved = Advance();
  if (!moved.ok()) return moved.status();
  if (*moved) {
    idle_wait_.Reset();
  } else {
    idle_wait_.Pause(awaited(), next_due_ns() - MonotonicNs());
  }
  return absl::OkStatus();
}

void SessionImpl::RaiseAlarm(int number, const absl::Status& status) {
  watch_.RaiseStreamAlarm(number, status);
}

void SessionImpl::Remove(StreamImpl* stream, const absl::Status& unfinished) {
  std::unique_lock<FairLock> lock;
  if (lock_ != nullptr) lock = std::unique_lock<FairLock>(*lock_);
  streams_.erase(std::remove(streams_.begin(), streams_.end(), stream), streams_.end());
  idle_wait_.Unwatch(stream->ready_fd());
  if (!stream->ended() && stream->is_exchanged()) RaiseAlarm(stream->number(), unfinished);
}

// ---- How streams are driven.

bool SessionImpl::AdvanceStreams() {
  for (const Watch::StreamAlarm& alarm : watch_.TakeStreamAlarms()) {
    if (alarm.stream >= streams_known_) early_alarms_.push_back(alarm);
    for (StreamImpl* const stream : streams_) {
      if (stream->number() == alarm.stream) stream->Fail(alarm.status);
    }
  }
  bool moved = false;
  const int64_t now_ns = MonotonicNs();
  for (StreamImpl* const stream : streams_) moved |= stream->Advance(now_ns);
  return moved;
}

void SessionImpl::PauseFor(Backoff* backoff) {
  if (!AdvanceStreams()) backoff->Pause();
}

Awaited SessionImpl::awaited() const {
  if (!runs_.empty() || AreCollectivesAwaited() || runner_->busy()) return Awaited::kRanks;
  Awaited awaited = Awaited::kNothing;
  for (const StreamImpl* const stream : streams_) {
    if (stream->ended()) continue;
    if (stream->needs_polls()) return Awaited::kRanks;
    awaited = Awaited::kFiles;
  }
  return awaited;
}

int64_t SessionImpl::next_due_ns() const {
  int64_t due_ns = INT64_MAX;
  for (const StreamImpl* const stream : streams_) {
    if (!stream->ended()) due_ns = std::min(due_ns, stream->next_due_ns());
  }
  return due_ns;
}

}  // namespace sluice
