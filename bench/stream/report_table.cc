// The header, a row for each mode, and the closing words.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "job/built_with.h"
#include "memory/memory_watch.h"
#include "stream/overlap.h"
#include "stream/report.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

double MiB(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

double ItemsPerSecond(const Result& r) {
  return r.total.seconds > 0 ? static_cast<double>(r.total.items) / r.total.seconds : 0;
}

std::string SourceLine(const StreamBenchOptions& o) {
  std::string text = absl::StrCat("# from ", o.source);
  if (o.is_generator()) {
    absl::StrAppend(&text, ": ", o.items, " items of ", BytesName(o.item_bytes), ", ",
                    o.generate_ms, " ms each, order ", o.generate_order);
    if (o.generate_ahead != 1) absl::StrAppend(&text, ", ", o.generate_ahead, " ahead");
    if (o.generator_threads != 1) absl::StrAppend(&text, ", ", o.generator_threads, " threads");
  }
  if (o.latency_ms > 0) absl::StrAppend(&text, ", ", o.latency_ms, " ms per read");
  if (o.tail_percent > 0) {
    absl::StrAppend(&text, ", ", o.tail_percent, "% of them x ", o.tail_factor);
  }
  if (!o.fault.empty()) absl::StrAppend(&text, ", faults ", o.fault);
  return text + "\n";
}

const char* CheckName(Check check) {
  return check == Check::kNone ? "none" : check == Check::kSample ? "sample" : "all";
}

std::string KnobLine(const StreamBenchOptions& o) {
  return absl::StrCat(
      "# budget ", BytesName(o.budget_bytes), o.slots > 0 ? absl::StrCat(", slots ", o.slots) : "",
      o.device == "cuda" ? ", CUDA"
      : o.is_emulated()  ? ", emulated device"
                         : ", device",
      " buffers ", o.device_buffers, o.batch > 1 ? absl::StrCat(" of ", o.batch) : "",
      o.device_gb_per_s > 0 ? absl::StrCat(" at ", o.device_gb_per_s, " GB/s") : "", ", order ",
      o.order, o.shuffle ? ", shuffled" : "",
      o.shuffle_block_items > 0 ? absl::StrCat(" in blocks of ", o.shuffle_block_items) : "",
      ", epochs ", o.epochs, ", hedge ", o.hedge, ", exchange ", o.exchange, ", share ", o.share,
      ", check ", CheckName(o.check),
      o.consume_us > 0 ? absl::StrCat(", ", o.consume_us, " us of computing per item") : "",
      o.transform ? absl::StrCat(", transform ", TransformText(TransformFlagsOf(o))) : "",
      o.progress_thread != 0 ? ", progress thread" : "", "\n");
}

std::string Grown(const StreamBenchOptions& options, const Result& r) {
  if (r.total.grown_bytes < 0) return "N/A";
  const std::optional<int64_t> allowed = AllowedGrowth(options, r);
  return absl::StrFormat("%.1f/%s", MiB(r.total.grown_bytes),
                         allowed ? absl::StrFormat("%.1f", MiB(*allowed)) : "-");
}

std::string OrDash(absl::optional<double> value, double scale) {
  return value ? absl::StrFormat("%.1f", *value * scale) : "-";
}

std::string OrNothing(absl::optional<double> value) {
  return value ? absl::StrFormat("%.6g", *value) : "";
}

std::string CsvRow(const StreamBenchOptions& options, const Result& r) {
  const RankOutcome& t = r.total;
  const std::optional<int64_t> allowed = AllowedGrowth(options, r);
  return absl::StrCat(
      absl::StrFormat("%s,%.3f,%.6f,%.6f,%.3f,%d,%d,%d,%d,%d,%d,%d,", r.mode, ItemsPerSecond(r),
                      GbPerSecond(t.bytes, 1e6 * t.seconds), r.stall_share, 1e3 * t.first_item_s,
                      t.requests, t.hedges, t.retries, t.peak_slots, t.limit_slots, t.peak_bytes,
                      t.limit_bytes),
      t.grown_bytes < 0 ? "" : absl::StrCat(t.grown_bytes), ",",
      allowed ? absl::StrCat(*allowed) : "", ",", t.wrong, ",",
      absl::StrFormat("%.4f", CpuPerGiB(t)), ",", t.bytes_copied, ",", t.major_faults, ",",
      OrNothing(OverlapOf(t)), ",", OrNothing(SequentialBytes(t)), "\n");
}

std::string InWords(const StreamReport& report) {
  const Result& ours = report.results.front();
  std::string text;
  for (size_t i = 1; i < report.results.size(); ++i) {
    const Result& theirs = report.results[i];
    if (ours.total.seconds <= 0) break;
    absl::StrAppendFormat(&text, "%s%.2f times as fast as %s", text.empty() ? "" : ", ",
                          theirs.total.seconds / ours.total.seconds, theirs.mode);
  }
  if (!text.empty()) text = absl::StrCat("sluice is ", text, ". ");
  absl::StrAppendFormat(&text, "Its consumer waited %.1f%% of the time after the first item.",
                        100 * ours.stall_share);
  return text;
}

}  // namespace

std::optional<int64_t> AllowedGrowth(const StreamBenchOptions& options, const Result& result) {
  if (result.mode != Mode().Name() || options.device != "cpu") return std::nullopt;
  return result.total.limit_bytes + result.total.device_bytes + kMemoryBesideStaging;
}

std::vector<std::string> GrowthErrors(const StreamBenchOptions& options,
                                      const std::vector<Result>& results) {
  std::vector<std::string> errors;
  for (const Result& result : results) {
    const RankOutcome& total = result.total;
    const std::optional<int64_t> allowed = AllowedGrowth(options, result);
    if (!allowed || total.grown_bytes <= *allowed) continue;
    errors.push_back(absl::StrCat(
        result.mode, ": the resident memory of rank ", total.grown_rank, " grew by ",
        BytesName(total.grown_bytes), " while items came; ", BytesName(*allowed), " are allowed: ",
        BytesName(total.limit_bytes), " of staging by the budget, ", BytesName(total.device_bytes),
        " of device buffers, and ", BytesName(kMemoryBesideStaging), " beside them"));
  }
  return errors;
}

std::string StreamTableHeader(const StreamBenchOptions& options, const StreamReport& report) {
  std::string text = absl::StrCat(
      "# sluice-bench stream ", SLUICE_VERSION, " (", BuiltWith(), ")\n#\n# ", report.world,
      report.world == 1 ? " rank on " : " ranks on ", report.hosts.size(),
      report.hosts.size() == 1 ? " host: " : " hosts: ", absl::StrJoin(report.hosts, ","), "; ",
      report.mpi, "\n");
  absl::StrAppend(
      &text, SourceLine(options), KnobLine(options),
      "# sums over ranks, by the slowest rank's time from opening to the last item's consumption",
      options.iterations > 1
          ? absl::StrCat(", median of ", options.iterations, " interleaved rounds")
          : "",
      "\n# stall: consumers' waits after the first item, of the time after it; 1 GB = 10^9 bytes\n"
      "# overlap: of the time with reads or copies under way, the part in which no consumer "
      "waited\n"
      "# in order: bytes read in the order of storage, on average, before the next jump\n"
      "# peaks: most on any rank / limit\n"
      "# memory: by what the resident memory of any rank grew in MiB / the budget, device buffers "
      "on "
      "the host and ",
      BytesName(kMemoryBesideStaging), "\n#\n");
  if (options.csv) {
    return text +
           "mode,items_per_s,gb_per_s,stall_share,first_ms,requests,hedges,retries,peak_slots,"
           "limit_slots,peak_bytes,limit_bytes,memory_grown,memory_allowed,wrong,cpu_s_per_gib,"
           "bytes_copied,major_faults,overlap,sequential_bytes\n";
  }
  absl::StrAppendFormat(
      &text, "#%13s %10s %8s %7s %10s %9s %7s %8s %11s %16s %16s %7s %9s %7s %8s %9s %8s\n", "mode",
      "items/s", "GB/s", "stall", "first", "requests", "hedges", "retries", "slots", "MiB",
      "memory", "CPU", "copied", "faults", "overlap", "in order", "#wrong");
  absl::StrAppendFormat(
      &text, "#%13s %10s %8s %7s %10s %9s %7s %8s %11s %16s %16s %7s %9s %7s %8s %9s %8s\n", "", "",
      "", "(%)", "(ms)", "", "", "", "(peak/lim)", "(peak/lim)", "(grown/may)", "(s/GiB)", "(MiB)",
      "(major)", "(%)", "(KiB)", "");
  return text;
}

std::string StreamTableRow(const StreamBenchOptions& options, const Result& r) {
  const RankOutcome& t = r.total;
  if (options.csv) return CsvRow(options, r);
  return absl::StrFormat(
      " %13s %10.1f %8.3f %7.1f %10.1f %9d %7d %8d %11s %16s %16s %7.3f %9.1f %7d %8s %9s %8d\n",
      r.mode, ItemsPerSecond(r), GbPerSecond(t.bytes, 1e6 * t.seconds), 100 * r.stall_share,
      1e3 * t.first_item_s, t.requests, t.hedges, t.retries,
      absl::StrCat(t.peak_slots, "/", t.limit_slots),
      absl::StrFormat("%.1f/%.1f", MiB(t.peak_bytes), MiB(t.limit_bytes)), Grown(options, r),
      CpuPerGiB(t), MiB(t.bytes_copied), t.major_faults, OrDash(OverlapOf(t), 100),
      OrDash(SequentialBytes(t), 1.0 / 1024), t.wrong);
}

bool StreamReport::ok() const {
  for (const Result& result : results) {
    if (result.total.wrong > 0 || result.total.items == 0) return false;
  }
  return errors.empty();
}

std::string StreamTableFooter(const StreamBenchOptions& options, const StreamReport& report) {
  int64_t wrong = 0;
  for (const Result& result : report.results) wrong += result.total.wrong;
  std::string text =
      absl::StrFormat("#\n# Wrong elements : %d %s\n", wrong, report.ok() ? "OK" : "FAILED");
  for (const Result& result : report.results) {
    if (result.total.items == 0) absl::StrAppend(&text, "# ", result.mode, " delivered nothing\n");
  }
  absl::StrAppend(&text, ErrorLines(report));
  if (report.errors.empty() && !report.results.empty()) {
    if (options.is_generator()) {
      absl::StrAppend(&text, OverlapLines(options, report.world, report.results));
    }
    absl::StrAppend(&text, "# ", InWords(report), "\n");
  }
  return text;
}

}  // namespace sluice::bench
