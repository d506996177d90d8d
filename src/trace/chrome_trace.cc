// The text of a trace file, in the Trace Event Format that Perfetto and chrome://tracing read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "sluice/trace.h"
#include "tensor/check.h"
#include "trace/json_text.h"
#include "trace/serialize.h"
#include "trace/trace_event.h"

namespace sluice {
namespace {

// Viewers treat process 0 and thread 0 as the idle task of a kernel, so both are counted from 1.
int ProcessOf(int rank) { return rank + 1; }
int ThreadOf(int slot) { return slot + 1; }

struct RankTrace {
  TraceContent content;
  std::string label;
};

class Writer {
 public:
  // Times are taken from `origin_ns` on.
  explicit Writer(int64_t origin_ns) : origin_ns_(origin_ns) {}

  void Add(const RankTrace& trace) {
    process_ = ProcessOf(trace.content.rank);
    Describe(trace);
    for (const TraceEvent& event : trace.content.events) {
      if (event.kind == TraceKind::kSample) {
        AddSample(event);
      } else {
        AddSpan(event);
      }
    }
  }

  std::string Finish() && {
    return absl::StrCat("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", text_, "\n]}\n");
  }

 private:
  // Opens an event: what all have in common. Names are ours and need no escapes, nor do ids.
  void Begin(const char* phase, absl::string_view name) {
    absl::StrAppend(&text_, text_.empty() ? "\n" : ",\n", "{\"ph\":\"", phase,
                    "\",\"pid\":", process_, ",\"name\":\"", name, "\"");
  }

  // One piece of metadata; `value` is JSON.
  void AddMetadata(absl::string_view name, absl::string_view key, absl::string_view value) {
    Begin("M", name);
    absl::StrAppend(&text_, ",\"args\":{\"", key, "\":", value, "}}");
  }

  void Describe(const RankTrace& trace) {
    const std::string label = trace.label.empty() ? "" : absl::StrCat(" (", trace.label, ")");
    AddMetadata("process_name", "name",
                JsonString(absl::StrCat("rank ", trace.content.rank, label)));
    AddMetadata("process_sort_index", "sort_index", absl::StrCat(trace.content.rank));
    if (trace.content.dropped > 0) {
      AddMetadata("process_labels", "labels",
                  JsonString(absl::StrCat(trace.content.dropped, " events were dropped")));
    }
    std::set<int> slots;
    for (const TraceEvent& event : trace.content.events) {
      if (event.kind != TraceKind::kSample) slots.insert(event.count);
    }
    for (const int slot : slots) {
      Begin("M", "thread_name");
      absl::StrAppend(&text_, ",\"tid\":", ThreadOf(slot), ",\"args\":{\"name\":\"slot ", slot,
                      "\"}}");
      Begin("M", "thread_sort_index");
      absl::StrAppend(&text_, ",\"tid\":", ThreadOf(slot), ",\"args\":{\"sort_index\":", slot,
                      "}}");
    }
  }

  void AddSpan(const TraceEvent& event) {
    const BucketIdFields id = event.id.fields();
    Begin("X", TraceKindName(event.kind));
    absl::StrAppend(&text_, ",\"cat\":\"bucket\",\"tid\":", ThreadOf(event.count),
                    ",\"ts\":", JsonMicroseconds(event.begin_ns - origin_ns_),
                    ",\"dur\":", JsonMicroseconds(event.end_ns - event.begin_ns));
    absl::StrAppend(&text_, ",\"args\":{\"bucket\":\"", event.id.ToString(),
                    "\",\"bytes\":", event.bytes, ",\"run\":", id.run, ",\"window\":", id.window,
                    "}}");
  }

  void AddSample(const TraceEvent& event) {
    AddCounter("buckets in flight", "buckets", event.count, event.begin_ns);
    AddCounter("bytes in flight", "bytes", event.bytes, event.begin_ns);
  }

  void AddCounter(absl::string_view name, absl::string_view key, int64_t value, int64_t at_ns) {
    Begin("C", name);
    absl::StrAppend(&text_, ",\"ts\":", JsonMicroseconds(at_ns - origin_ns_), ",\"args\":{\"", key,
                    "\":", value, "}}");
  }

  int64_t origin_ns_;
  int process_ = 0;
  std::string text_;
};

std::string Write(absl::Span<const RankTrace> traces) {
  int64_t origin_ns = std::numeric_limits<int64_t>::max();
  for (const RankTrace& trace : traces) {
    for (const TraceEvent& event : trace.content.events) {
      origin_ns = std::min(origin_ns, event.begin_ns);
    }
  }
  Writer writer(origin_ns);
  for (const RankTrace& trace : traces) writer.Add(trace);
  return std::move(writer).Finish();
}

absl::StatusOr<RankTrace> Read(const TracePart& part) {
  if (part.clock_offset_ns <= -kTraceTimeEndNs || part.clock_offset_ns >= kTraceTimeEndNs) {
    return absl::InvalidArgumentError(
        absl::StrCat("a clock offset of ", part.clock_offset_ns, " ns"));
  }
  absl::StatusOr<TraceContent> content = DecodeTrace(part.content);
  if (!content.ok()) return content.status();
  for (TraceEvent& event : content->events) {
    event.begin_ns += part.clock_offset_ns;
    event.end_ns += part.clock_offset_ns;
  }
  return RankTrace{.content = *std::move(content), .label = part.label};
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
    case TraceKind::kSample:
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
      return absl::InvalidArgumentError(
          absl::StrCat("part ", i, " of the trace: ", trace.status().message()));
    }
    if (!ranks.insert(trace->content.rank).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("part ", i, " of the trace: rank ", trace->content.rank, " comes twice"));
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
