// Many ranks' records in one trace file, on one clock.
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
#include "tensor/error_text.h"
#include "trace/event_writer.h"
#include "trace/serialize.h"
#include "trace/trace_event.h"

namespace sluice {
namespace {

struct RankTrace {
  TraceContent content;
  std::string label;
};

std::string Write(absl::Span<const RankTrace> traces) {
  int64_t origin_ns = std::numeric_limits<int64_t>::max();
  for (const RankTrace& trace : traces) {
    for (const TraceEvent& event : trace.content.events) {
      origin_ns = std::min(origin_ns, event.begin_ns);
    }
  }
  EventWriter writer(origin_ns);
  for (const RankTrace& trace : traces) writer.Add(trace.content, trace.label);
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
