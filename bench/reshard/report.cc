// The header, the rows and the closing lines.
#include "reshard/report.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "job/built_with.h"
#include "memory/memory_watch.h"
#include "reshard/lanes.h"
#include "tensor/quoted.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

// Whose memory the tensors are in.
std::string MemoryWords(const Options& options) {
  if (options.gpu.uses_device()) return ", in memory of devices";
  if (options.memory == "private") return ", in your own memory";
  if (options.windowed > 0) return ", from memory that Sluice allocated to your own";
  return ", in memory that Sluice allocated";
}

// What carries the bytes.
std::string WireLines(const RunReport& report) {
  std::string text;
  for (const LaneWires& lane : report.wires) {
    absl::StrAppend(&text, "\n# wires",
                    lane.suffix.empty() ? "" : absl::StrCat(" of ", lane.suffix), ": ",
                    lane.report.ToString());
  }
  return text + "\n";
}

std::string NoteLines(const RunReport& report) {
  std::string text;
  for (const std::string& note : report.notes) absl::StrAppend(&text, "# note: ", note, "\n");
  return text;
}

// Three columns and the case, all else in comments around them.
std::string OsuHeader(const Options& options, const RunReport& report) {
  return absl::StrCat("# sluice-bench reshard ", SLUICE_VERSION, " (", BuiltWith(), ")",
                      MemoryWords(options), "\n# [ ranks: ", report.world,
                      " ] [ hosts: ", absl::StrJoin(report.hosts, ","), " ] [ ", report.mpi, " ]",
                      WireLines(report), NoteLines(report),
                      "# Size: bytes delivered to other ranks per run; MB = 10^6 bytes; a message "
                      "is a bucket\n",
                      absl::StrFormat("%-12s%20s%20s  Case\n", "# Size", "MB/s", "Messages/s"));
}

std::string OsuRow(const CaseResult& r) {
  const double per_second = r.median_us > 0 ? 1e6 / r.median_us : 0;
  return absl::StrFormat("%-12d%20.2f%20.2f  %s\n", r.payload_bytes,
                         static_cast<double>(r.payload_bytes) * per_second / 1e6,
                         static_cast<double>(r.buckets) * per_second, Escaped(r.id));
}

std::string BaselineLine(const CaseResult& r) {
  std::vector<std::string> parts;
  parts.reserve(r.baselines.size());
  for (const BaselineResult& b : r.baselines) {
    parts.push_back(b.reason.empty()
                        ? absl::StrFormat("%s %.2f [%.2f .. %.2f]%s", b.name, b.ratio.median,
                                          b.ratio.p25, b.ratio.p75, b.wrong > 0 ? " WRONG" : "")
                        : absl::StrCat(b.name, " - (", b.reason, ")"));
  }
  if (parts.empty()) return "";
  return absl::StrCat("#   theirs / ours, median [quartiles]: ", absl::StrJoin(parts, "; "), "\n");
}

bool IsNarrow(const Options& options) { return options.format == "table" && !options.wide; }

std::string OptionLine(const Options& options, const std::string& transport) {
  Options defaults;
  static_cast<void>(ParseTexts(&defaults));
  const auto config_of = [](const Options& o) {
    FlagConfig config;
    for (const auto& [name, value] : Knobs(o)) config.emplace_back(name, value);
    for (auto& choice : Choices(o)) config.push_back(std::move(choice));
    return config;
  };
  std::vector<std::string> first = {absl::StrCat("transport=", transport)};
  if (options.gpu.uses_device()) {
    first.push_back(absl::StrCat("src_device=", options.gpu.src_device));
    first.push_back(absl::StrCat("dst_device=", options.gpu.dst_device));
  }
  return OptionLines(first, config_of(options), config_of(defaults));
}

std::string NarrowHead(const Options& options) {
  std::string head = NarrowColumns(options.baselines).TableHead();
  const size_t end = head.find('\n');
  return head.insert(end, "  case");
}

std::string ReasonLines(const CaseResult& r) {
  std::string text;
  for (const BaselineResult& b : r.baselines) {
    if (!b.reason.empty()) absl::StrAppend(&text, "#   ", b.name, ": ", b.reason, "\n");
  }
  return text;
}

// An average means something over sizes of one case alone.
bool AreAlike(const Options& options, const RunReport& report) {
  const bool one_plan = LanesOf(options).size() == 1 && options.cases_file.empty();
  return report.results.size() == 1 ||
         (!report.results.empty() && one_plan && options.model_file.empty());
}

std::string Verdict(absl::Span<const CaseResult> results) {
  int64_t wrong = 0;
  bool checked = true;
  for (const CaseResult& result : results) {
    wrong += result.wrong;
    checked = checked && result.checked;
  }
  if (!checked) return "Elements were not verified (--check none).";
  if (wrong > 0) return absl::StrCat("VERIFICATION FAILED: ", wrong, " elements are wrong.");
  return absl::StrCat(results[0].sampled ? "A sample of the elements" : "Every element",
                      " was verified on every target rank after every run: all right.");
}

// Of one case, with one budget or with several that are compared: what was moved, checked and held.
std::string InWords(absl::Span<const CaseResult> results) {
  const CaseResult& first = results[0];
  std::string text = absl::StrCat(
      "\n", first.tensors, first.tensors == 1 ? " tensor, " : " tensors, ",
      BytesName(first.payload_bytes), " delivered to other ranks per run, in ", first.buckets,
      " buckets over ", first.channels, " channels.\n", Verdict(results), "\n");
  std::vector<BudgetRun> runs;
  for (const CaseResult& r : results) {
    runs.push_back({r.limit_buckets, r.peak_buckets, r.peak_bytes, r.median_us});
  }
  return text + BudgetWords(runs);
}

}  // namespace

std::string HeaderText(const Options& options, const RunReport& report) {
  if (options.format == "osu") return OsuHeader(options, report);
  std::string text = FirstLines("reshard", MemoryWords(options), report) +
                     OptionLine(options, TransportName(options, report));
  absl::StrAppend(&text, absl::StripLeadingAsciiWhitespace(WireLines(report)));
  if (report.nccl_bytes > 0) {
    absl::StrAppend(&text, "# NCCL may take ", report.nccl_bytes >> 20,
                    " MiB of each device for its connections\n");
  }
  if (IsNarrow(options)) {
    absl::StrAppend(&text,
                    "# time: median of the iterations; GB/s: 10^9 bytes that came to ranks which "
                    "lacked them\n",
                    "# at once: most on any rank, of its limit; staging: memory between tensors "
                    "and wires\n");
    if (!options.baselines.empty()) {
      absl::StrAppend(&text,
                      "# x NAME: its time over Sluice's, median of the iterations; *: it is "
                      "faster; -: it cannot do this\n");
    }
    return absl::StrCat(text, NoteLines(report), "#\n", NarrowHead(options));
  }
  absl::StrAppend(&text, "# time: ",
                  report.hosts.size() == 1
                      ? "from the first rank's start to the last rank's end on the host's "
                        "monotonic clock"
                      : "from barrier to barrier",
                  ", median of the iterations\n",
                  "# size: the case's tensors, each element once; payload: elements delivered to "
                  "target ranks that did not own them\n"
                  "# algbw: payload / time; busbw: bytes out of the busiest rank, or delivered to "
                  "it, / time; 1 GB = 10^9 bytes\n",
                  "# peaks: most on any rank / limit (-: no limit); bytes are of staging\n"
                  "# wait: share of the run in which the budget alone held a bucket back, mean "
                  "over ranks\n",
                  "# memory: by what the resident memory of any rank grew in all runs / "
                  "staging by the budget and ",
                  BytesName(kMemoryBesideStaging), "\n", NoteLines(report));
  return options.format == "csv" ? text + CaseColumns().CsvHead()
                                 : absl::StrCat(text, "#\n", CaseColumns().TableHead());
}

std::string RowText(const Options& options, const CaseResult& r, const CaseResult* before) {
  if (options.format == "osu") return OsuRow(r);
  if (options.format == "csv") return CaseColumns().CsvRow(r);
  std::string text;
  const bool is_as_before = before != nullptr && before->bucket_bytes == r.bucket_bytes &&
                            before->max_in_flight == r.max_in_flight;
  if (r.automatic && !is_as_before) {
    absl::StrAppend(&text, "#   auto: buckets of at most ", BytesName(r.bucket_bytes), ", ",
                    r.max_in_flight, " of a channel in flight\n");
  }
  absl::StrAppend(&text, IsNarrow(options)
                             ? RowOfCase(NarrowColumns(options.baselines).TableRow(r), r.id)
                             : CaseColumns().TableRow(r));
  if (r.whole_target_bytes > 0) {
    absl::StrAppend(&text, "#   windows: a rank held at most ", r.windowed_target_bytes,
                    " B of targets at once, ", r.windowed_bytes,
                    " B with staging; all its targets are ", r.whole_target_bytes, " B\n");
  }
  return IsNarrow(options) ? text + ReasonLines(r) : text + BaselineLine(r);
}

std::string FooterText(const Options& options, const RunReport& report, bool is_whole) {
  const bool for_programs = options.format != "table";
  int64_t wrong = 0;
  double bandwidth = 0;
  std::string text;
  for (const CaseResult& result : report.results) {
    wrong += result.wrong;
    bandwidth += result.bus_bw;
    // Nothing comes between rows that programs read.
    if (!for_programs || result.baselines.empty()) continue;
    absl::StrAppend(&text, "# ", Escaped(result.id), "\n", BaselineLine(result));
  }
  if (!report.results.empty()) {
    absl::StrAppendFormat(&text, "# Out of bounds values : %d %s\n", wrong,
                          wrong == 0 && report.errors.empty() ? "OK" : "FAILED");
  }
  if (AreAlike(options, report)) {
    absl::StrAppendFormat(&text, "# Avg bus bandwidth    : %.4f\n",
                          bandwidth / static_cast<double>(report.results.size()));
  }
  absl::StrAppend(&text, ErrorLines(report));
  const size_t lanes = LanesOf(options).size();
  const bool has_words =
      is_whole && !for_programs && report.results.size() == lanes &&
      (lanes > 1 ? lanes == options.compare_budgets.size() : !options.model_file.empty());
  return has_words ? text + InWords(report.results) : text;
}

}  // namespace sluice::bench
