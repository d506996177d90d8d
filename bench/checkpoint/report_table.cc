// The table.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "checkpoint/report.h"
#include "job/built_with.h"
#include "tensor/quoted.h"

namespace sluice::bench {
namespace {

using Cells = std::vector<std::string>;

// `first`: what the line begins with.
std::string Line(const char* first, const Cells& cells) {
  constexpr int kWidths[] = {5, 8, 6, 14, 14, 14, 10, 9, 8, 24, 20};
  std::string line = first;
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::StrAppendFormat(&line, "%s%*s", i == 0 ? "" : " ", kWidths[i], cells[i]);
  }
  return line + "\n";
}

std::string FlagsText(const CheckpointBenchOptions& options) {
  std::string text;
  for (const auto& [name, value] : Config(options)) {
    const std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
    if (!shown.empty() && shown != "[]") absl::StrAppend(&text, " ", name, "=", Escaped(shown));
  }
  return text;
}

}  // namespace

std::string TableHeader(const CheckpointBenchOptions& options, const CheckpointReport& report) {
  std::string text = absl::StrCat(
      "# sluice-bench checkpoint ", SLUICE_VERSION, " (", BuiltWith(), ")\n#\n# ", report.world,
      " ranks on ", absl::StrJoin(report.hosts, ","), "\n#", FlagsText(options),
      "\n# bytes: of the tensors in files; read: asked of storage, beside headers; "
      "time: the whole call, median\n",
      "# peak: most staging of any rank / limit; #wrong: - if nothing was compared; "
      "1 GB = 10^9 bytes\n");
  Cells names = {"mode", "tensors", "files", "bytes",  "read",
                 "sent", "time",    "rate",  "#wrong", "peak"};
  Cells units = {"", "", "", "(B)", "(B)", "(B)", "(s)", "(GB/s)", "", "(B)"};
  if (!options.baselines.empty()) {
    absl::StrAppend(&text,
                    "# ratio: time over that of load, and quartiles of the rounds' ratios\n");
    names.emplace_back("ratio");
  }
  absl::StrAppend(&text, "#\n", Line("#", names), Line("#", units));
  return text;
}

std::string TableRows(const CheckpointResult& r) {
  const CheckpointStats& s = r.stats;
  const auto row = [&r](const std::vector<double>& seconds, int64_t wrong) {
    return Cells{absl::StrFormat("%.4f", MedianSeconds(seconds)),
                 absl::StrFormat("%.3f", GbPerS(r, seconds)),
                 r.checked ? absl::StrCat(wrong) : "-"};
  };
  const Cells ours = row(r.seconds, r.wrong);
  const std::string tensors = absl::StrCat(s.tensors);
  const std::string files = absl::StrCat(s.files);
  const std::string bytes = absl::StrCat(s.file_bytes);
  std::string text = Line(
      " ", {r.mode, tensors, files, bytes, absl::StrCat(s.bytes_read), absl::StrCat(s.sent_bytes),
            ours[0], ours[1], ours[2], absl::StrCat(s.budget_bytes_peak, "/", s.budget_bytes)});
  for (const OtherWay& way : r.others) {
    if (!way.reason.empty()) {
      absl::StrAppend(&text, "# ", way.name, ": ", way.reason, "\n");
      continue;
    }
    const Cells theirs = row(way.seconds, way.wrong);
    const TimeRatio ratio = RatioOf(way, r);
    absl::StrAppend(
        &text,
        Line(" ", {way.name, tensors, files, bytes, "-", "-", theirs[0], theirs[1], theirs[2], "-",
                   absl::StrFormat("%.2f [%.2f .. %.2f]", ratio.medians, ratio.p25, ratio.p75)}));
  }
  return text;
}

}  // namespace sluice::bench
