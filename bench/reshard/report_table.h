// Results as text, in the manner of nccl-tests. Printed by rank 0 alone.
#ifndef SLUICE_BENCH_RESHARD_REPORT_TABLE_H_
#define SLUICE_BENCH_RESHARD_REPORT_TABLE_H_

#include <string>

#include "absl/types/span.h"
#include "reshard/options.h"
#include "reshard/result.h"

namespace sluice::bench {

// Whose memory the tensors are in, for the first line of a table: "in your own memory".
std::string MemoryWords(const Options& options);

// What carries the bytes, as lines of a header: each begins with a line break.
std::string WireLines(const RunReport& report);

// What precedes the rows: versions, knobs, notes, column names and units.
std::string TableHeader(const Options& options, const RunReport& report);

// One line, with its newline; more in comments, such as that of baselines.
std::string TableRow(const CaseResult& result);

// The same in the manner of the OSU micro-benchmarks: a row is one line, with the case last.
std::string OsuHeader(const Options& options, const RunReport& report);
std::string OsuRow(const CaseResult& result);

// The same as comma separated values: their names, which TableHeader ends with, and a row.
std::string CsvHeader();
std::string CsvRow(const CaseResult& result);

// How the baselines did, as a comment line; empty without them.
std::string BaselineLine(const CaseResult& result);

// What follows the rows: out of bounds values, averages, errors.
std::string TableFooter(const RunReport& report);
// The same where programs read the rows: nothing comes between those, so the baselines of all cases
// come here.
std::string FooterWithBaselines(const RunReport& report);

// For a model: what was moved, checked and held, in words. `results` are of one case, with one
// budget or with several that are compared.
std::string InWords(absl::Span<const CaseResult> results);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_REPORT_TABLE_H_
