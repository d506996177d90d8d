// Gathering traces, and what clocks of different hosts are apart.
#include "job/trace_file.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "sluice/status.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

struct Head {
  int64_t barrier_ns;  // when the rank left a barrier
  int64_t dropped;
};

}  // namespace

absl::StatusOr<std::string> WriteTraceFile(const std::string& path, const TraceLog& log,
                                           absl::Duration timeout, Ranks* ranks,
                                           Ranks::Progress progress, const std::string& note,
                                           TraceFileFacts* facts) {
  SLUICE_RETURN_IF_ERROR(ranks->Barrier(timeout, progress));
  const Head mine = {MonotonicNs(), log.dropped()};
  std::string record(sizeof(Head), '\0');
  std::memcpy(record.data(), &mine, sizeof(Head));
  record += log.Serialize();
  SLUICE_ASSIGN_OR_RETURN(const auto records, ranks->GatherToFirst(record, timeout, progress));
  if (ranks->rank() != 0) return std::string();
  const bool one_clock = ranks->hosts().size() == 1;
  std::vector<TracePart> parts;
  int64_t dropped = 0;
  for (size_t r = 0; r < records.size(); ++r) {
    Head head{};
    std::memcpy(&head, records[r].data(), sizeof(Head));
    TracePart part;
    part.content = records[r].substr(sizeof(Head));
    if (!one_clock) part.clock_offset_ns = mine.barrier_ns - head.barrier_ns;
    part.label = ranks->hosts()[static_cast<size_t>(ranks->host_of_rank()[r])];
    if (!note.empty()) absl::StrAppend(&part.label, ", ", note);
    dropped += head.dropped;
    parts.push_back(std::move(part));
  }
  SLUICE_ASSIGN_OR_RETURN(const auto json, ChromeTrace(parts));
  SLUICE_RETURN_IF_ERROR(WriteFile(path, json));
  if (facts != nullptr) *facts = {static_cast<int64_t>(json.size()), dropped};
  return absl::StrCat(
      "trace: ", path, ", ", json.size(), " bytes, for ui.perfetto.dev",
      dropped > 0 ? absl::StrCat("; ", dropped, " events found no room, see --trace-events") : "");
}

}  // namespace sluice::bench
