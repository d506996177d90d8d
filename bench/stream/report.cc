// The header, a row for each mode, and the closing words.
#include "stream/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "memory/memory_watch.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

std::string SourceLine(const StreamBenchOptions& o) {
  const StreamSource& source = o.stream.source;
  std::string text = absl::StrCat("# from ", o.source);
  if (o.is_generator()) {
    absl::StrAppend(&text, ": ", o.items, " items of ", BytesName(source.item_bytes), ", ",
                    o.generate_ms, " ms each, order ", o.generate_order);
    if (source.generate_ahead != 1) absl::StrAppend(&text, ", ", source.generate_ahead, " ahead");
    const int threads = source.generator_threads;
    if (threads != 1) absl::StrAppend(&text, ", ", threads, " threads");
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
  const StreamReads& reads = o.stream.reads;
  const StreamOrder& order = o.stream.order;
  const StreamBuffers& buffers = o.stream.buffers;
  return absl::StrCat(
      "# budget ", BytesName(reads.budget_bytes),
      reads.slots ? absl::StrCat(", slots ", *reads.slots) : "",
      o.device == "cuda" ? ", CUDA"
      : o.is_emulated()  ? ", emulated device"
                         : ", device",
      " buffers ", buffers.count,
      buffers.batch_items > 1 ? absl::StrCat(" of ", buffers.batch_items) : "",
      o.device_gb_per_s > 0 ? absl::StrCat(" at ", o.device_gb_per_s, " GB/s") : "", ", order ",
      o.order, order.shuffle ? ", shuffled" : "",
      order.shuffle_block_items ? absl::StrCat(" in blocks of ", *order.shuffle_block_items) : "",
      ", epochs ", order.epochs, ", hedge ", reads.hedge.enabled, ", exchange ", reads.exchange,
      ", share ", o.share, ", check ", CheckName(o.check),
      o.consume_us > 0 ? absl::StrCat(", ", o.consume_us, " us of computing per item") : "",
      buffers.transform ? absl::StrCat(", transform ", TransformText(o.transform_flags)) : "",
      o.progress_thread ? ", progress thread" : "", "\n");
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

double GenerateSeconds(const StreamBenchOptions& options) { return options.generate_ms * 1e-3; }
double ConsumeSeconds(const StreamBenchOptions& options) { return options.consume_us * 1e-6; }

// Lines of a table's end: a generator's speed-up, staleness and items, of each mode.
std::string OverlapLines(const StreamBenchOptions& options, int world,
                         const std::vector<Result>& results) {
  std::string text;
  const double ideal = SpeedUpIdeal(options, world);
  for (const Result& result : results) {
    absl::StrAppend(&text, "# ", result.mode, ": ");
    if (ideal > 0) {
      absl::StrAppendFormat(&text, "%.3f times as fast as one after the other",
                            SpeedUp(options, world, result));
      if (result.mode == Mode().Name()) absl::StrAppendFormat(&text, " (at most %.3f)", ideal);
      absl::StrAppend(&text, ", ");
    }
    absl::StrAppend(&text, "staleness at most ", result.total.stats.staleness_max, ", items ",
                    absl::Hex(result.total.item_hash, absl::kZeroPad16), "\n");
  }
  return text;
}

}  // namespace

double SpeedUp(const StreamBenchOptions& options, int world, const Result& result) {
  if (result.total.seconds <= 0) return 0;
  const double each = GenerateSeconds(options) + ConsumeSeconds(options);
  return static_cast<double>(result.total.stats.items) / world * each / result.total.seconds;
}

double SpeedUpIdeal(const StreamBenchOptions& options, int world) {
  const int makers = options.stream.reads.exchange && !options.deals() ? world : 1;
  // Those that work at one batch; a batch is made in so many turns.
  const int64_t items = options.stream.buffers.batch_items;
  const int64_t lanes =
      std::clamp<int64_t>(int64_t{options.stream.source.generator_threads} * makers, 1, items);
  const int64_t turns = (items + lanes - 1) / lanes;
  const double batch = static_cast<double>(items);
  const double make = GenerateSeconds(options) * static_cast<double>(turns) / batch;
  const double consume = ConsumeSeconds(options);
  const double least =
      options.generate_order == "after-update" ? make + consume : std::max(make, consume);
  return least > 0 ? (GenerateSeconds(options) + consume) / least : 0;
}

std::optional<int64_t> AllowedGrowth(const StreamBenchOptions& options, const Result& result) {
  if (result.mode != Mode().Name() || options.device != "cpu") return std::nullopt;
  const StreamStats& stats = result.total.stats;
  return stats.budget_bytes + stats.device_bytes + kMemoryBesideStaging;
}

std::vector<std::string> GrowthErrors(const StreamBenchOptions& options,
                                      const std::vector<Result>& results) {
  std::vector<std::string> errors;
  for (const Result& result : results) {
    const RankOutcome& total = result.total;
    const std::optional<int64_t> allowed = AllowedGrowth(options, result);
    if (!allowed || total.grown_bytes <= *allowed) continue;
    errors.push_back(
        absl::StrCat(result.mode, ": the resident memory of rank ", total.grown_rank, " grew by ",
                     BytesName(total.grown_bytes), " while items came; ", BytesName(*allowed),
                     " are allowed: ", BytesName(total.stats.budget_bytes),
                     " of staging by the budget, ", BytesName(total.stats.device_bytes),
                     " of device buffers, and ", BytesName(kMemoryBesideStaging), " beside them"));
  }
  return errors;
}

std::string StreamTableHeader(const StreamBenchOptions& options, const StreamReport& report) {
  std::string text = FirstLines("stream", "", report);
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
  const Columns<Result> columns = StreamColumns(options);
  return text + (options.csv ? columns.CsvHead() : columns.TableHead());
}

std::string StreamTableRow(const StreamBenchOptions& options, const Result& result) {
  const Columns<Result> columns = StreamColumns(options);
  return options.csv ? columns.CsvRow(result) : columns.TableRow(result);
}

bool StreamReport::ok() const {
  for (const Result& result : results) {
    if (result.total.wrong > 0 || result.total.stats.items == 0) return false;
  }
  return errors.empty();
}

std::string StreamTableFooter(const StreamBenchOptions& options, const StreamReport& report) {
  int64_t wrong = 0;
  for (const Result& result : report.results) wrong += result.total.wrong;
  std::string text =
      absl::StrFormat("#\n# Wrong elements : %d %s\n", wrong, report.ok() ? "OK" : "FAILED");
  for (const Result& result : report.results) {
    if (result.total.stats.items == 0)
      absl::StrAppend(&text, "# ", result.mode, " delivered nothing\n");
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
