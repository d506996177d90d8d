// Results as text, in the manner of nccl-tests or of the OSU micro-benchmarks, as comma separated
// values, and as a JSON file, whose keys are an interface. Rank 0 alone reports.
#ifndef SLUICE_BENCH_RESHARD_REPORT_H_
#define SLUICE_BENCH_RESHARD_REPORT_H_

#include <string>
#include <vector>

#include "reshard/options.h"
#include "reshard/result.h"

namespace sluice::bench {

// What each row has, and with --plan-only.
const Columns<CaseResult>& CaseColumns();
const Columns<PlanFigures>& PlanColumns();

// What people look at first, with a column for each of `baselines`. Without the case, at most
// kTableWidth characters wide, unless most baselines are there.
Columns<CaseResult> NarrowColumns(const std::vector<std::string>& baselines);

// What precedes the rows, in the options' format: versions, knobs, notes, column names and units.
std::string HeaderText(const Options& options, const RunReport& report);
// One line, with its newline; in a table more in comments, such as the case where it is too long
// for the row. `before`: the result of the row before; null: none.
std::string RowText(const Options& options, const CaseResult& result, const CaseResult* before);
// What follows the rows: out of bounds values, averages, errors. With `is_whole`, all cases have
// been run: a model's, and one case with several budgets, are put into words.
std::string FooterText(const Options& options, const RunReport& report, bool is_whole);

// The whole document. Until `report.finished`, its errors say that the run has not ended, so that a
// file left by a killed run cannot be taken for a good one.
std::string JsonText(const Options& options, const RunReport& report);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_REPORT_H_
