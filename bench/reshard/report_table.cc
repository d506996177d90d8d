// The header, the rows and the closing lines.
#include "reshard/report_table.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "job/built_with.h"
#include "memory/memory_watch.h"
#include "tensor/quoted.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

std::string Against(int64_t peak, int64_t limit) {
  return limit > 0 ? absl::StrCat(peak, "/", limit) : absl::StrCat(peak, "/-");
}

std::string Grown(const MemoryGrowth& memory) {
  if (memory.method == "none") return "N/A";
  return absl::StrCat(memory.growth_bytes, "/",
                      memory.judged ? absl::StrCat(memory.allowed_bytes) : "-");
}

std::string WindowLine(const CaseResult& r) {
  if (r.whole_target_bytes == 0) return "";
  return absl::StrFormat(
      "#   windows: a rank held at most %d B of targets at once, %d B with staging; all its "
      "targets "
      "are %d B\n",
      r.windowed_target_bytes, r.windowed_bytes, r.whole_target_bytes);
}

std::string ChosenLine(const CaseResult& r) {
  if (!r.automatic) return "";
  return absl::StrCat("#   buckets of at most ", BytesName(r.bucket_bytes), ", ", r.max_in_flight,
                      " of a channel in flight\n");
}

}  // namespace

std::string MemoryWords(const Options& options) {
  if (options.gpu.uses_device()) return "in memory of devices";
  if (options.memory == "private") return "in your own memory";
  if (options.windowed > 0) return "from memory that Sluice allocated to your own";
  return "in memory that Sluice allocated";
}

std::string WireLines(const RunReport& report) {
  std::string text;
  for (const LaneWires& lane : report.wires) {
    absl::StrAppend(&text, "\n# wires",
                    lane.suffix.empty() ? "" : absl::StrCat(" of ", lane.suffix), ": ",
                    lane.report.ToString());
  }
  return text;
}

std::string TableHeader(const Options& options, const RunReport& report) {
  std::string text = absl::StrCat(
      "# sluice-bench reshard ", SLUICE_VERSION, " (", BuiltWith(), "), ", MemoryWords(options),
      "\n#\n# ", report.world, " ranks on ", report.hosts.size(),
      report.hosts.size() == 1 ? " host: " : " hosts: ", absl::StrJoin(report.hosts, ","), "; ",
      report.mpi, "\n#");
  for (const auto& [name, value] : Knobs(options)) absl::StrAppend(&text, " ", name, "=", value);
  absl::StrAppend(&text, " timeout_s=", options.timeout_s,
                  " transport=", TransportName(options, report), " plan=", options.plan);
  if (options.gpu.uses_device()) {
    absl::StrAppend(&text, " src_device=", options.gpu.src_device,
                    " dst_device=", options.gpu.dst_device);
  } else {
    absl::StrAppend(&text, " memory=", options.memory);
  }
  absl::StrAppend(&text, WireLines(report));
  if (report.nccl_bytes > 0) {
    absl::StrAppend(&text, "\n# NCCL may take ", report.nccl_bytes >> 20,
                    " MiB of each device for its connections");
  }
  const bool one_host = report.hosts.size() == 1;
  absl::StrAppend(&text, "\n# time: ",
                  one_host ? "from the first rank's start to the last rank's end on the host's "
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
                  BytesName(kMemoryBesideStaging), "\n");
  for (const std::string& note : report.notes) absl::StrAppend(&text, "# note: ", note, "\n");
  if (options.format == "csv") return text + CsvHeader();
  absl::StrAppend(
      &text, "#\n",
      absl::StrFormat("#%13s %13s %9s %9s %8s %11s %8s %8s %8s %11s %11s %22s %7s %22s  %s\n",
                      "size", "payload", "buckets", "channels", "dtype", "time", "algbw", "busbw",
                      "#wrong", "p99", "buckets", "bytes", "wait", "memory", "case"),
      absl::StrFormat("#%13s %13s %9s %9s %8s %11s %8s %8s %8s %11s %11s %22s %7s %22s\n", "(B)",
                      "(B)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(peak/lim)",
                      "(peak/lim)", "(%)", "(grown/may)"));
  return text;
}

std::string TableRow(const CaseResult& r) {
  const std::string wrong = r.checked ? absl::StrCat(r.wrong) : "N/A";
  return absl::StrFormat(
             " %13d %13d %9d %9d %8s %11.1f %8.3f %8.3f %8s %11.1f %11s %22s %7.1f %22s  %s\n",
             r.tensor_bytes, r.payload_bytes, r.buckets, r.channels, r.dtype, r.median_us, r.alg_bw,
             r.bus_bw, wrong, r.p99_us, Against(r.peak_buckets, r.limit_buckets),
             Against(r.peak_bytes, r.limit_bytes), 100 * r.wait_share, Grown(r.memory),
             Escaped(r.id)) +
         ChosenLine(r) + WindowLine(r) + BaselineLine(r);
}

std::string BaselineLine(const CaseResult& r) {
  std::vector<std::string> parts;
  for (const BaselineResult& b : r.baselines) {
    parts.push_back(b.reason.empty()
                        ? absl::StrFormat("%s %.2f [%.2f .. %.2f]%s", b.name, b.ratio, b.ratio_p25,
                                          b.ratio_p75, b.wrong > 0 ? " WRONG" : "")
                        : absl::StrCat(b.name, " - (", b.reason, ")"));
  }
  if (parts.empty()) return "";
  return absl::StrCat("#   theirs / ours, median [quartiles]: ", absl::StrJoin(parts, "; "), "\n");
}

std::string TableFooter(const RunReport& report) {
  int64_t wrong = 0;
  double bandwidth = 0;
  for (const CaseResult& result : report.results) {
    wrong += result.wrong;
    bandwidth += result.bus_bw;
  }
  if (!report.results.empty()) bandwidth /= static_cast<double>(report.results.size());
  std::string text = absl::StrFormat("# Out of bounds values : %d %s\n", wrong,
                                     wrong == 0 && report.errors.empty() ? "OK" : "FAILED");
  absl::StrAppendFormat(&text, "# Avg bus bandwidth    : %.4f\n", bandwidth);
  return text + ErrorLines(report);
}

std::string FooterWithBaselines(const RunReport& report) {
  std::string text;
  for (const CaseResult& result : report.results) {
    if (result.baselines.empty()) continue;
    absl::StrAppend(&text, "# ", Escaped(result.id), "\n", BaselineLine(result));
  }
  return text + TableFooter(report);
}

}  // namespace sluice::bench
