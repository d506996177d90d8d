// Setting aside a recorder's memory.
#include "trace/recorder.h"

#include <cstddef>
#include <cstdint>

#include "tensor/check.h"

namespace sluice {
namespace {

size_t Capacity(int64_t capacity) {
  SLUICE_CHECK(capacity >= 1, "a recorder keeps at least one event");
  return static_cast<size_t>(capacity);
}

}  // namespace

TraceRecorder::TraceRecorder(int64_t capacity) : events_(Capacity(capacity)) {}

}  // namespace sluice
