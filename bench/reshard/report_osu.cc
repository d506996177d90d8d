// Results in the manner of the OSU micro-benchmarks: three columns and the case, all else in
// comments around them.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "job/built_with.h"
#include "reshard/report_table.h"
#include "tensor/quoted.h"

namespace sluice::bench {
namespace {

constexpr int kSizeWidth = 12;
constexpr int kColumnWidth = 20;

double PerSecond(int64_t count, double time_us) {
  return time_us > 0 ? static_cast<double>(count) / time_us * 1e6 : 0;
}

}  // namespace

std::string OsuHeader(const Options& options, const RunReport& report) {
  std::string text = absl::StrCat("# sluice-bench reshard ", SLUICE_VERSION, " (", BuiltWith(),
                                  "), ", MemoryWords(options), "\n# [ ranks: ", report.world,
                                  " ] [ hosts: ", absl::StrJoin(report.hosts, ","), " ] [ ",
                                  report.mpi, " ]", WireLines(report), "\n");
  for (const std::string& note : report.notes) absl::StrAppend(&text, "# note: ", note, "\n");
  absl::StrAppend(&text,
                  "# Size: bytes delivered to other ranks per run; MB = 10^6 bytes; a message is a "
                  "bucket\n",
                  absl::StrFormat("%-*s%*s%*s  Case\n", kSizeWidth, "# Size", kColumnWidth, "MB/s",
                                  kColumnWidth, "Messages/s"));
  return text;
}

std::string OsuRow(const CaseResult& r) {
  return absl::StrFormat("%-*d%*.2f%*.2f  %s\n", kSizeWidth, r.payload_bytes, kColumnWidth,
                         PerSecond(r.payload_bytes, r.median_us) / 1e6, kColumnWidth,
                         PerSecond(r.buckets, r.median_us), Escaped(r.id));
}

}  // namespace sluice::bench
