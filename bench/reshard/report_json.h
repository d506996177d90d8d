// Results as a JSON file; its keys are an interface.
#ifndef SLUICE_BENCH_RESHARD_REPORT_JSON_H_
#define SLUICE_BENCH_RESHARD_REPORT_JSON_H_

#include <string>

#include "reshard/options.h"
#include "reshard/result.h"

namespace sluice::bench {

// The whole document. Until `report.finished`, its errors say that the run has not ended, so that a
// file left by a killed run cannot be taken for a good one.
std::string JsonText(const Options& options, const RunReport& report);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_REPORT_JSON_H_
