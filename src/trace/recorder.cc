// The parts of the recorder that are not on the way of buckets.
#include "trace/recorder.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "tensor/check.h"
#include "trace/serialize.h"

namespace sluice {
namespace {

size_t Capacity(int64_t capacity) {
  SLUICE_CHECK(capacity >= 1, "a recorder keeps at least one event");
  return static_cast<size_t>(capacity);
}

}  // namespace

TraceRecorder::TraceRecorder(int rank, int64_t capacity)
    : rank_(rank), events_(Capacity(capacity)) {
  SLUICE_CHECK(rank >= 0, "ranks are not negative");
}

std::string TraceRecorder::Serialize() const {
  return EncodeTrace(rank_, dropped_, absl::MakeConstSpan(events_).first(size_));
}

void TraceRecorder::Clear() {
  size_ = 0;
  dropped_ = 0;
  last_buckets_ = -1;
  last_bytes_ = -1;
}

}  // namespace sluice
