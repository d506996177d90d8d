// Case files: one JSON format that describes redistributions.
//
// {"cases": [{"id", "shape", "dtype",
//             "source": {"mesh", "ranks", "placements", "order", "dtype"},
//             "target": {the same}}]}, or one bare case. "dtype" defaults to f32; a side's own goes
// before the case's. "order" may be left out: left to right. In place of mesh, ranks, placements
// and order a side may have "boxes": [{"rank", "parts": [{"offset", "shape"}]}]. Whether a layout
// fits the tensor and the job is Session::Compile's to say.
#ifndef SLUICE_BENCH_WORKLOAD_CASE_FILE_H_
#define SLUICE_BENCH_WORKLOAD_CASE_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "workload/workload.h"

namespace sluice::bench {

// InvalidArgument if `text` is not a case file at all (not JSON, no cases, two cases with one id).
// A case that is wrong by itself is kept, with a status that names the key.
absl::StatusOr<Workload> ParseCaseFile(absl::string_view text);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_CASE_FILE_H_
