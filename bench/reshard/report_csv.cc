// Results as comma separated values; all else is in comments.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "reshard/report_table.h"
#include "tensor/quoted.h"

namespace sluice::bench {
namespace {

// As RFC 4180 has it.
std::string QuotedCell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

std::string CsvHeader() {
  return "size,payload,buckets,channels,dtype,time_us,algbw,busbw,wrong,p99_us,peak_buckets,"
         "limit_buckets,peak_bytes,limit_bytes,wait_share,memory_grown,memory_allowed,case\n";
}

std::string CsvRow(const CaseResult& r) {
  const bool grown = r.memory.method != "none";
  return absl::StrCat(
      absl::StrFormat("%d,%d,%d,%d,%s,%.3f,%.6f,%.6f,", r.tensor_bytes, r.payload_bytes, r.buckets,
                      r.channels, r.dtype, r.median_us, r.alg_bw, r.bus_bw),
      r.checked ? absl::StrCat(r.wrong) : "",
      absl::StrFormat(",%.3f,%d,%d,%d,%d,%.6f,", r.p99_us, r.peak_buckets, r.limit_buckets,
                      r.peak_bytes, r.limit_bytes, r.wait_share),
      grown ? absl::StrCat(r.memory.growth_bytes) : "", ",",
      grown && r.memory.judged ? absl::StrCat(r.memory.allowed_bytes) : "", ",",
      QuotedCell(Escaped(r.id)), "\n");
}

}  // namespace sluice::bench
