// Spans of waits, epochs and buffers.
#include "session/stream/consumer_trace.h"

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

std::string Named(int stream, absl::string_view what) {
  return absl::StrCat("stream ", stream, what.empty() ? "" : ", ", what);
}

TraceItem Of(int64_t epoch, int64_t item) { return {item, static_cast<int32_t>(epoch)}; }

}  // namespace

ConsumerTrace::ConsumerTrace(JoinedTraceLog* log, int64_t capacity, int stream, int buffers,
                             int64_t epochs, absl::string_view memory)
    : recorder_(log->LendRecorder(capacity)),
      epochs_(epochs),
      wait_track_(log->AddTrack(Named(stream, "consumer"))),
      epoch_track_(log->AddTrack(Named(stream, "epochs"))) {
  for (int buffer = 0; buffer < buffers; ++buffer) {
    buffer_tracks_.push_back(
        log->AddTrack(Named(stream, absl::StrCat(memory, " buffer ", buffer))));
  }
}

void ConsumerTrace::Wait(const DeliveredItem& first, int64_t begin_ns, int64_t end_ns) {
  if (first.epoch != epoch_) {
    End(begin_ns);
    epoch_ = first.epoch;
    epoch_begin_ns_ = begin_ns;
  }
  if (!Wants(first.epoch)) return;
  recorder_->Span(TraceKind::kConsumerWait, wait_track_, Of(first.epoch, first.item), 0, begin_ns,
                  end_ns);
}

void ConsumerTrace::Consume(int buffer, absl::Span<const DeliveredItem> items, int64_t begin_ns,
                            int64_t end_ns) {
  if (items.empty() || !Wants(items[0].epoch)) return;
  int64_t bytes = 0;
  for (const DeliveredItem& item : items) {
    int64_t item_bytes = DTypeBytes(item.dtype);
    for (const int64_t size : item.shape) item_bytes *= size;
    bytes += item_bytes;
  }
  recorder_->Span(TraceKind::kConsume, buffer_tracks_[static_cast<size_t>(buffer)],
                  Of(items[0].epoch, items[0].item), bytes, begin_ns, end_ns);
}

void ConsumerTrace::End(int64_t now_ns) {
  if (epoch_ >= 0 && Wants(epoch_)) {
    recorder_->Span(TraceKind::kEpoch, epoch_track_, Of(epoch_, -1), 0, epoch_begin_ns_, now_ns);
  }
  epoch_ = -1;
}

}  // namespace sluice
