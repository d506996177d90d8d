// Named workloads that published comparisons use.
#ifndef SLUICE_BENCH_WORKLOAD_PRESETS_H_
#define SLUICE_BENCH_WORKLOAD_PRESETS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/tensor.h"
#include "workload/workload.h"

namespace sluice::bench {

struct PresetOptions {
  std::vector<int64_t> shape = {1024, 1024};
  int tensors = 2;
  DType dtype = DType::kF32;
};

// "etha-N-no_partial", "etha-N-replicate_dp", "etha-N-partial_dp", N = 1..8: 16 ranks, 0-7 to 8-15,
// one case with `tensors` tensors of one shape. NotFound lists the names.
absl::StatusOr<Case> MakePreset(absl::string_view name, const PresetOptions& options);

// All names, in order.
std::vector<std::string> PresetNames();

// A line for each: its name, how many ranks it takes, and its layouts.
std::string PresetListText();

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_PRESETS_H_
