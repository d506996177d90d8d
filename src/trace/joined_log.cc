// Adding up what several recorders have.
#include "trace/joined_log.h"

#include <cstdint>
#include <memory>
#include <string>

#include "tensor/check.h"
#include "trace/serialize.h"
#include "trace/trace_event.h"

namespace sluice {

JoinedTraceLog::JoinedTraceLog(int rank) : rank_(rank) {
  SLUICE_CHECK(rank >= 0, "ranks are not negative");
}

TraceRecorder* JoinedTraceLog::AddRecorder(int64_t capacity) {
  recorders_.push_back(std::make_unique<TraceRecorder>(capacity));
  return recorders_.back().get();
}

int JoinedTraceLog::AddTrack(absl::string_view name) {
  tracks_.emplace_back(name);
  return static_cast<int>(tracks_.size()) - 1;
}

int64_t JoinedTraceLog::capacity() const {
  int64_t sum = 0;
  for (const auto& recorder : recorders_) sum += recorder->capacity();
  return sum;
}

int64_t JoinedTraceLog::size() const {
  int64_t sum = 0;
  for (const auto& recorder : recorders_) sum += static_cast<int64_t>(recorder->events().size());
  return sum;
}

int64_t JoinedTraceLog::dropped() const {
  int64_t sum = 0;
  for (const auto& recorder : recorders_) sum += recorder->dropped();
  return sum;
}

std::string JoinedTraceLog::Serialize() const {
  TraceContent content;
  content.rank = rank_;
  content.tracks = tracks_;
  for (const auto& recorder : recorders_) {
    const absl::Span<const TraceEvent> events = recorder->events();
    content.events.insert(content.events.end(), events.begin(), events.end());
    content.dropped += recorder->dropped();
  }
  return EncodeTrace(content);
}

void JoinedTraceLog::Clear() {
  for (const auto& recorder : recorders_) recorder->Clear();
}

}  // namespace sluice
