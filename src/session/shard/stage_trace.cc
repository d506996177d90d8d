// Spans and samples of slots.
#include "session/shard/stage_trace.h"

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

std::string Named(int stream, absl::string_view what) {
  return absl::StrCat("stream ", stream, what.empty() ? "" : ", ", what);
}

TraceItem Of(int64_t epoch, int64_t item) { return {item, static_cast<int32_t>(epoch)}; }

}  // namespace

StageTrace::StageTrace(JoinedTraceLog* log, int64_t capacity, int stream, int slots, int64_t epochs)
    : recorder_(log->LendRecorder(capacity)),
      epochs_(epochs),
      stream_track_(log->AddTrack(Named(stream, ""))) {
  for (int slot = 0; slot < slots; ++slot) {
    slot_tracks_.push_back(log->AddTrack(Named(stream, absl::StrCat("slot ", slot))));
  }
}

void StageTrace::Stage(TraceKind kind, size_t slot, const ShardPiece& piece, int64_t begin_ns,
                       int64_t end_ns) {
  const int64_t epoch = static_cast<int64_t>(piece.id.fields().run);
  if (!Wants(epoch)) return;
  recorder_->Span(kind, slot_tracks_[slot], Of(epoch, piece.read.item), piece.id, piece.bytes,
                  begin_ns, end_ns);
}

void StageTrace::Item(int64_t epoch, int64_t item, int64_t bytes, int64_t begin_ns,
                      int64_t end_ns) {
  if (!Wants(epoch)) return;
  recorder_->Span(TraceKind::kItem, stream_track_, Of(epoch, item), bytes, begin_ns, end_ns);
}

}  // namespace sluice
