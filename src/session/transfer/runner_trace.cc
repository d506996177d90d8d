// Shows a runner's stages to profilers, and in the trace.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "session/transfer/bucket_sides.h"
#include "session/transfer/runner.h"
#include "trace/profiler_range.h"

namespace sluice {
namespace {

TraceKind KindOf(Stage stage) {
  return stage == Stage::kFilling  ? TraceKind::kFill
         : stage == Stage::kMoving ? TraceKind::kMove
                                   : TraceKind::kDrain;
}

// The tensors of a bucket, and its neighbours while it moves.
TraceStage StageOf(const CompiledTransfer& transfer, const Bucket& bucket, Stage stage) {
  TraceStage found;
  int32_t last = -1;
  for (const Chunk& chunk : ChunksOf(transfer.plan(), bucket)) {
    const int32_t tensor = transfer.trace_names[static_cast<size_t>(chunk.tensor)];
    // Chunks of one tensor come one after the other.
    if (found.tensors == 0) found.tensor = tensor;
    if (tensor != last) ++found.tensors;
    last = tensor;
  }
  if (stage != Stage::kMoving) return found;
  const Channel& channel = transfer.plan().channels[static_cast<size_t>(bucket.channel)];
  found.from = channel.parent.peer;
  found.to = channel.owner.peer;
  return found;
}

}  // namespace

void Runner::TraceBegin(Held* held, Stage stage) {
  held->range = BeginProfilerRange(KindOf(stage), held->work.bucket().bytes);
  if (trace_.recorder == nullptr) return;
  held->begin_ns = MonotonicNs();
  const EngineCounters& now = carrier_.engine()->counters();
  trace_.recorder->Sample(held->begin_ns, now.held_buckets, now.staging_bytes);
}

void Runner::TraceEnd(size_t slot, Stage stage) {
  const Held& held = held_[slot];
  EndProfilerRange(held.range);
  if (trace_.recorder == nullptr) return;
  const Bucket& bucket = held.work.bucket();
  const int64_t now_ns = MonotonicNs();
  trace_.recorder->Span(KindOf(stage), held.work.id(), static_cast<int>(slot), bucket.bytes,
                        held.begin_ns, now_ns, StageOf(held.work.run()->transfer(), bucket, stage));
  const EngineCounters& now = carrier_.engine()->counters();
  trace_.recorder->Sample(now_ns, now.held_buckets, now.staging_bytes);
}

void Runner::TraceDevice() {
  for (const DeviceSpan& span : device_->TakeSpans()) {
    trace_.recorder->Span(TraceKind::kDeviceCopy, trace_.device_track + span.row, TraceItem(), 0,
                          span.begin_ns, span.end_ns);
  }
}

void Runner::TraceNames(CompiledTransfer* transfer) {
  transfer->trace_names.clear();
  transfer->trace_names.reserve(transfer->names().size());
  for (const absl::string_view name : transfer->names()) {
    transfer->trace_names.push_back(trace_.log->NumberOf(name));
  }
}

}  // namespace sluice
