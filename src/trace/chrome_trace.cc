// Many ranks' records in one trace file, on one clock.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plan/bucket.h"
#include "sluice/trace.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "trace/json_text.h"
#include "trace/serialize.h"
#include "trace/trace_event.h"

namespace sluice {
namespace {

// One rank's part in the move of a bucket.
struct RankMove {
  int rank = 0;
  const TraceEvent* event = nullptr;
};

// Events as text in the Trace Event Format
// (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): of one event
// of a rank's record, one or two of the format.
class EventWriter {
 public:
  // Times are taken from `origin_ns` on.
  explicit EventWriter(int64_t origin_ns) : origin_ns_(origin_ns) {}

  // A rank's events, after what describes them. `label` may be empty.
  void Add(const TraceContent& content, const std::string& label);
  // An arrow from one move to another one of the same bucket.
  void AddArrow(const RankMove& from, const RankMove& to);

  // The whole file.
  std::string Finish() &&;

 private:
  int ThreadOf(const TraceEvent& event) const;
  std::string TrackName(int track) const;

  void Begin(const char* phase, absl::string_view name);
  void BeginQuoted(const char* phase, absl::string_view quoted_name);
  void AddMetadata(absl::string_view name, absl::string_view key, absl::string_view value);
  void Describe(const std::string& label);
  void DescribeTracks();
  void DescribeThread(int thread, absl::string_view quoted_name);
  void AddEvent(const TraceEvent& event);
  void AddStage(const TraceEvent& event);
  std::string NameOf(const TraceEvent& event, const TraceStage& stage) const;
  void AddArrowEnd(const char* phase, const RankMove& move, int64_t at_ns);
  void AddStreamSpan(const TraceEvent& event);
  void AddItem(const TraceEvent& event);
  void AddStreamArgs(const TraceEvent& event);
  void AddCounter(absl::string_view quoted_name, absl::string_view key, int64_t value,
                  int64_t at_ns);

  int64_t origin_ns_;
  uint64_t items_ = 0;   // written so far; numbers their ids
  uint64_t arrows_ = 0;  // the same
  std::string text_;
  // State of the rank whose events are being written:
  const TraceContent* content_ = nullptr;
  int process_ = 0;
  int slots_ = 0;  // tracks of slots; those with names come after
};

// Viewers treat process 0 and thread 0 as the idle task of a kernel, so both are counted from 1.
int ProcessOf(int rank) { return rank + 1; }
int ThreadOfSlot(int slot) { return slot + 1; }

void EventWriter::Add(const TraceContent& content, const std::string& label) {
  content_ = &content;
  process_ = ProcessOf(content.rank);
  slots_ = 0;
  for (const TraceEvent& event : content.events) {
    if (IsStage(event.kind)) slots_ = std::max(slots_, event.count + 1);
  }
  Describe(label);
  for (const TraceEvent& event : content.events) AddEvent(event);
}

std::string EventWriter::Finish() && {
  return absl::StrCat("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", text_, "\n]}\n");
}

int EventWriter::ThreadOf(const TraceEvent& event) const {
  return ThreadOfSlot(IsStage(event.kind) ? event.count : slots_ + event.track);
}

std::string EventWriter::TrackName(int track) const {
  const auto number = static_cast<size_t>(track);
  return number < content_->tracks.size() ? content_->tracks[number]
                                          : absl::StrCat("track ", track);
}

// Opens an event: what all have in common. For names that are ours and need no escapes, nor do ids.
void EventWriter::Begin(const char* phase, absl::string_view name) {
  absl::StrAppend(&text_, text_.empty() ? "\n" : ",\n", "{\"ph\":\"", phase,
                  "\",\"pid\":", process_, ",\"name\":\"", name, "\"");
}

// For names that are JSON strings already.
void EventWriter::BeginQuoted(const char* phase, absl::string_view quoted_name) {
  absl::StrAppend(&text_, text_.empty() ? "\n" : ",\n", "{\"ph\":\"", phase,
                  "\",\"pid\":", process_, ",\"name\":", quoted_name);
}

// One piece of metadata; `value` is JSON.
void EventWriter::AddMetadata(absl::string_view name, absl::string_view key,
                              absl::string_view value) {
  Begin("M", name);
  absl::StrAppend(&text_, ",\"args\":{\"", key, "\":", value, "}}");
}

void EventWriter::Describe(const std::string& label) {
  const std::string shown = label.empty() ? "" : absl::StrCat(" (", label, ")");
  AddMetadata("process_name", "name", JsonString(absl::StrCat("rank ", content_->rank, shown)));
  AddMetadata("process_sort_index", "sort_index", absl::StrCat(content_->rank));
  if (content_->dropped > 0) {
    AddMetadata("process_labels", "labels",
                JsonString(absl::StrCat(content_->dropped, " events were dropped")));
  }
  DescribeTracks();
}

void EventWriter::DescribeTracks() {
  std::set<int> slots;
  std::set<int> tracks;
  for (const TraceEvent& event : content_->events) {
    if (IsStage(event.kind)) {
      slots.insert(event.count);
    } else if (IsSpan(event.kind)) {
      tracks.insert(event.track);
    }
  }
  for (const int slot : slots) {
    DescribeThread(ThreadOfSlot(slot), absl::StrCat("\"slot ", slot, "\""));
  }
  for (const int track : tracks) {
    DescribeThread(ThreadOfSlot(slots_ + track), JsonString(TrackName(track)));
  }
}

void EventWriter::DescribeThread(int thread, absl::string_view quoted_name) {
  Begin("M", "thread_name");
  absl::StrAppend(&text_, ",\"tid\":", thread, ",\"args\":{\"name\":", quoted_name, "}}");
  Begin("M", "thread_sort_index");
  absl::StrAppend(&text_, ",\"tid\":", thread, ",\"args\":{\"sort_index\":", thread - 1, "}}");
}

void EventWriter::AddEvent(const TraceEvent& event) {
  if (IsStage(event.kind)) return AddStage(event);
  if (event.kind == TraceKind::kItem) return AddItem(event);
  if (IsSpan(event.kind)) return AddStreamSpan(event);
  if (event.kind == TraceKind::kSample) {
    AddCounter("\"buckets in flight\"", "buckets", event.count, event.begin_ns);
    AddCounter("\"bytes in flight\"", "bytes", event.bytes, event.begin_ns);
    return;
  }
  const std::string stream = TrackName(event.track);
  AddCounter(JsonString(stream + ": buckets in flight"), "buckets", event.count, event.begin_ns);
  AddCounter(JsonString(stream + ": bytes in flight"), "bytes", event.bytes, event.begin_ns);
}

// "move layers.0.weight", "move layers.0.weight + 3"
std::string EventWriter::NameOf(const TraceEvent& event, const TraceStage& stage) const {
  const auto tensor = static_cast<size_t>(stage.tensor);
  std::string name = TraceKindName(event.kind);
  if (stage.tensor < 0 || tensor >= content_->tensors.size()) return name;
  absl::StrAppend(&name, " ", content_->tensors[tensor]);
  if (stage.tensors > 1) absl::StrAppend(&name, " + ", stage.tensors - 1);
  return name;
}

void EventWriter::AddStage(const TraceEvent& event) {
  const BucketIdFields id = event.id.fields();
  const TraceStage stage = event.stage();
  const auto tensor = static_cast<size_t>(stage.tensor);
  BeginQuoted("X", JsonString(NameOf(event, stage)));
  absl::StrAppend(&text_, ",\"cat\":\"bucket\",\"tid\":", ThreadOf(event),
                  ",\"ts\":", JsonMicroseconds(event.begin_ns - origin_ns_),
                  ",\"dur\":", JsonMicroseconds(event.end_ns - event.begin_ns));
  absl::StrAppend(&text_, ",\"args\":{\"bucket\":\"", event.id.ToString(),
                  "\",\"bytes\":", event.bytes, ",\"run\":", id.run, ",\"window\":", id.window,
                  ",\"stage\":\"", TraceKindName(event.kind), "\"");
  if (stage.tensor >= 0 && tensor < content_->tensors.size()) {
    absl::StrAppend(&text_, ",\"tensor\":", JsonString(content_->tensors[tensor]),
                    ",\"tensors\":", stage.tensors);
  }
  if (stage.from >= 0) absl::StrAppend(&text_, ",\"from\":", stage.from);
  if (stage.to >= 0) absl::StrAppend(&text_, ",\"to\":", stage.to);
  text_ += "}}";
}

// Viewers bind each end to the span that its time lies in: both ends of a span do, or almost.
void EventWriter::AddArrow(const RankMove& from, const RankMove& to) {
  ++arrows_;
  AddArrowEnd("s", from, from.event->begin_ns);
  AddArrowEnd("f", to, std::max(to.event->begin_ns, to.event->end_ns - 1));
}

void EventWriter::AddArrowEnd(const char* phase, const RankMove& move, int64_t at_ns) {
  process_ = ProcessOf(move.rank);
  Begin(phase, "bytes");
  absl::StrAppend(&text_, ",\"cat\":\"bucket\",\"id\":", arrows_,
                  ",\"tid\":", ThreadOfSlot(move.event->count),
                  ",\"ts\":", JsonMicroseconds(at_ns - origin_ns_), ",\"bp\":\"e\"}");
}

void EventWriter::AddStreamSpan(const TraceEvent& event) {
  Begin("X", TraceKindName(event.kind));
  absl::StrAppend(&text_, ",\"cat\":\"stream\",\"tid\":", ThreadOf(event),
                  ",\"ts\":", JsonMicroseconds(event.begin_ns - origin_ns_),
                  ",\"dur\":", JsonMicroseconds(event.end_ns - event.begin_ns));
  AddStreamArgs(event);
}

// Complete events of one thread must lie within each other or apart. Items do neither, so each one
// is a pair of events with an id of its own.
void EventWriter::AddItem(const TraceEvent& event) {
  const std::string id = absl::StrCat("0x", absl::Hex(++items_));
  Begin("b", TraceKindName(event.kind));
  absl::StrAppend(&text_, ",\"cat\":\"stream\",\"id\":\"", id, "\",\"tid\":", ThreadOf(event),
                  ",\"ts\":", JsonMicroseconds(event.begin_ns - origin_ns_));
  AddStreamArgs(event);
  Begin("e", TraceKindName(event.kind));
  absl::StrAppend(&text_, ",\"cat\":\"stream\",\"id\":\"", id, "\",\"tid\":", ThreadOf(event),
                  ",\"ts\":", JsonMicroseconds(event.end_ns - origin_ns_), "}");
}

// Closes the event.
void EventWriter::AddStreamArgs(const TraceEvent& event) {
  absl::StrAppend(&text_, ",\"args\":{\"bytes\":", event.bytes);
  if (event.item >= 0) absl::StrAppend(&text_, ",\"item\":", event.item);
  if (event.epoch >= 0) absl::StrAppend(&text_, ",\"epoch\":", event.epoch);
  if (event.has_id) absl::StrAppend(&text_, ",\"bucket\":\"", event.id.ToString(), "\"");
  text_ += "}}";
}

void EventWriter::AddCounter(absl::string_view quoted_name, absl::string_view key, int64_t value,
                             int64_t at_ns) {
  BeginQuoted("C", quoted_name);
  absl::StrAppend(&text_, ",\"ts\":", JsonMicroseconds(at_ns - origin_ns_), ",\"args\":{\"", key,
                  "\":", value, "}}");
}

struct RankTrace {
  TraceContent content;
  std::string label;
};

// The moves of all ranks, by bucket and rank.
std::vector<RankMove> MovesOf(absl::Span<const RankTrace> traces) {
  std::vector<RankMove> moves;
  for (const RankTrace& trace : traces) {
    for (const TraceEvent& event : trace.content.events) {
      if (event.kind == TraceKind::kMove) moves.push_back({trace.content.rank, &event});
    }
  }
  std::sort(moves.begin(), moves.end(), [](const RankMove& a, const RankMove& b) {
    return std::tie(a.event->id, a.rank) < std::tie(b.event->id, b.rank);
  });
  return moves;
}

// Arrows from the ranks that sent a bucket to those that got it, as far as both are in the file.
void AddArrows(absl::Span<const RankTrace> traces, EventWriter* writer) {
  const std::vector<RankMove> moves = MovesOf(traces);
  for (auto begin = moves.begin(); begin != moves.end();) {
    const auto end = std::find_if(begin, moves.end(), [begin](const RankMove& move) {
      return move.event->id != begin->event->id;
    });
    const auto of_rank = [begin, end](int rank) {
      return std::find_if(begin, end, [rank](const RankMove& move) { return move.rank == rank; });
    };
    for (auto move = begin; move != end; ++move) {
      const TraceStage stage = move->event->stage();
      if (const auto sender = of_rank(stage.from); sender != end) writer->AddArrow(*sender, *move);
      if (const auto adder = of_rank(stage.to); adder != end) writer->AddArrow(*move, *adder);
    }
    begin = end;
  }
}

std::string Write(absl::Span<const RankTrace> traces) {
  int64_t origin_ns = std::numeric_limits<int64_t>::max();
  for (const RankTrace& trace : traces) {
    for (const TraceEvent& event : trace.content.events) {
      origin_ns = std::min(origin_ns, event.begin_ns);
    }
  }
  EventWriter writer(origin_ns);
  for (const RankTrace& trace : traces) writer.Add(trace.content, trace.label);
  AddArrows(traces, &writer);
  return std::move(writer).Finish();
}

absl::StatusOr<RankTrace> Read(const TracePart& part) {
  if (part.clock_offset_ns <= -kTraceTimeEndNs || part.clock_offset_ns >= kTraceTimeEndNs) {
    return absl::InvalidArgumentError(
        absl::StrCat("a clock offset of ", part.clock_offset_ns, " ns"));
  }
  SLUICE_ASSIGN_OR_RETURN(TraceContent content, DecodeTrace(part.content));
  for (TraceEvent& event : content.events) {
    event.begin_ns += part.clock_offset_ns;
    event.end_ns += part.clock_offset_ns;
  }
  return RankTrace{.content = std::move(content), .label = part.label};
}

}  // namespace

const char* TraceKindName(TraceKind kind) {
  switch (kind) {
    case TraceKind::kFill:
      return "fill";
    case TraceKind::kMove:
      return "move";
    case TraceKind::kDrain:
      return "drain";
    case TraceKind::kEpoch:
      return "epoch";
    case TraceKind::kItem:
      return "item";
    case TraceKind::kConsume:
      return "consume";
    case TraceKind::kConsumerWait:
      return "consumer_wait";
    case TraceKind::kStorageRead:
      return "storage_read";
    case TraceKind::kDeviceCopy:
      return "device_copy";
    case TraceKind::kExchange:
      return "exchange";
    case TraceKind::kSample:
    case TraceKind::kStreamSample:
      break;
  }
  SLUICE_CHECK(false, "a sample is no span");
}

absl::StatusOr<std::string> ChromeTrace(absl::Span<const TracePart> parts) {
  std::vector<RankTrace> traces;
  std::set<int> ranks;
  for (size_t i = 0; i < parts.size(); ++i) {
    absl::StatusOr<RankTrace> trace = Read(parts[i]);
    if (!trace.ok()) {
      return MakeError(absl::StatusCode::kInvalidArgument, "part ", i,
                       " of the trace: ", trace.status());
    }
    if (!ranks.insert(trace->content.rank).second) {
      return MakeError(absl::StatusCode::kInvalidArgument, "part ", i,
                       " of the trace: ", RankInWords(trace->content.rank), " comes twice");
    }
    traces.push_back(*std::move(trace));
  }
  return Write(traces);
}

std::string ChromeTrace(const TraceLog& log) {
  const TracePart part{.content = log.Serialize(), .clock_offset_ns = 0, .label = ""};
  absl::StatusOr<std::string> text = ChromeTrace(absl::MakeConstSpan(&part, 1));
  SLUICE_CHECK(text.ok(), "a log cannot read what it has written");
  return *std::move(text);
}

}  // namespace sluice
