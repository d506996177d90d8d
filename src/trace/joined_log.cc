// Adding up what several recorders have.
#include "trace/joined_log.h"

#include <cstdint>
#include <memory>
#include <string>

#include "tensor/check.h"
#include "trace/serialize.h"
#include "trace/trace_event.h"

namespace sluice {

JoinedTraceLog::JoinedTraceLog(int rank, FairLock* lock) : rank_(rank), lock_(lock) {
  SLUICE_CHECK(rank >= 0, "ranks are not negative");
}

TraceRecorder* JoinedTraceLog::AddRecorder(int64_t capacity) {
  recorders_.push_back(std::make_unique<Recorder>(capacity));
  return &recorders_.back()->recorder;
}

LentRecorder JoinedTraceLog::LendRecorder(int64_t capacity) {
  for (const auto& one : recorders_) {
    // Acquires what its last user recorded.
    if (one->recorder.capacity() != capacity || one->lent.load(std::memory_order_acquire)) continue;
    one->lent.store(true, std::memory_order_relaxed);
    return LentRecorder(&one->recorder, {&one->lent});
  }
  TraceRecorder* const recorder = AddRecorder(capacity);
  return LentRecorder(recorder, {&recorders_.back()->lent});
}

int JoinedTraceLog::AddTrack(absl::string_view name) {
  tracks_.emplace_back(name);
  return static_cast<int>(tracks_.size()) - 1;
}

int32_t JoinedTraceLog::NumberOf(absl::string_view tensor) {
  const auto [found, is_new] =
      tensor_numbers_.try_emplace(tensor, static_cast<int32_t>(tensors_.size()));
  if (is_new) tensors_.emplace_back(tensor);
  return found->second;
}

int64_t JoinedTraceLog::capacity() const {
  int64_t sum = 0;
  for (const auto& one : recorders_) sum += one->recorder.capacity();
  return sum;
}

int64_t JoinedTraceLog::size() const {
  const std::unique_lock<FairLock> lock = Hold(lock_);
  int64_t sum = 0;
  for (const auto& one : recorders_) sum += static_cast<int64_t>(one->recorder.events().size());
  return sum;
}

int64_t JoinedTraceLog::dropped() const {
  const std::unique_lock<FairLock> lock = Hold(lock_);
  int64_t sum = 0;
  for (const auto& one : recorders_) sum += one->recorder.dropped();
  return sum;
}

std::string JoinedTraceLog::Serialize() const {
  const std::unique_lock<FairLock> lock = Hold(lock_);
  TraceContent content;
  content.rank = rank_;
  content.tracks = tracks_;
  content.tensors = tensors_;
  for (const auto& one : recorders_) {
    const absl::Span<const TraceEvent> events = one->recorder.events();
    content.events.insert(content.events.end(), events.begin(), events.end());
    content.dropped += one->recorder.dropped();
  }
  return EncodeTrace(content);
}

void JoinedTraceLog::Clear() {
  const std::unique_lock<FairLock> lock = Hold(lock_);
  for (const auto& one : recorders_) one->recorder.Clear();
}

}  // namespace sluice
