// Findings as people and programs read them.
#ifndef SLUICE_TOOLS_DOCTOR_TABLE_H_
#define SLUICE_TOOLS_DOCTOR_TABLE_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/types/span.h"
#include "doctor/findings.h"

namespace sluice::bench {

// A line for each, wrapped, with what to do below it; the count of problems at the end.
std::string FindingsText(absl::Span<const Finding> findings);

// The "results" of a results file.
nlohmann::ordered_json FindingsJson(absl::Span<const Finding> findings);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_DOCTOR_TABLE_H_
