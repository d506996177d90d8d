// Shows a runner's stages to profilers, and in the trace.
#include "base/clock.h"
#include "session/transfer/runner.h"
#include "trace/profiler_range.h"

namespace sluice {
namespace {

TraceKind KindOf(Stage stage) {
  return stage == Stage::kFilling  ? TraceKind::kFill
         : stage == Stage::kMoving ? TraceKind::kMove
                                   : TraceKind::kDrain;
}

}  // namespace

void Runner::TraceBegin(Held* held, Stage stage) {
  held->range = BeginProfilerRange(KindOf(stage), held->work.bucket().bytes);
  if (trace_ == nullptr) return;
  held->begin_ns = MonotonicNs();
  const EngineCounters& now = carrier_.engine()->counters();
  trace_->Sample(held->begin_ns, now.held_buckets, now.staging_bytes);
}

void Runner::TraceEnd(size_t slot, Stage stage) {
  const Held& held = held_[slot];
  EndProfilerRange(held.range);
  if (trace_ == nullptr) return;
  const Bucket& bucket = held.work.bucket();
  const int64_t now_ns = MonotonicNs();
  trace_->Span(KindOf(stage), bucket.id.WithRun(static_cast<uint64_t>(held.work.run()->id())),
               static_cast<int>(slot), bucket.bytes, held.begin_ns, now_ns);
  const EngineCounters& now = carrier_.engine()->counters();
  trace_->Sample(now_ns, now.held_buckets, now.staging_bytes);
}

void Runner::TraceDevice() {
  for (const DeviceSpan& span : device_->TakeSpans()) {
    trace_->Span(TraceKind::kDeviceCopy, device_track_ + span.row, TraceItem(), 0, span.begin_ns,
                 span.end_ns);
  }
}

}  // namespace sluice
