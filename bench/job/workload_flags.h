// The flags that say what to move: case files, presets, models, or one case in full.
#ifndef SLUICE_BENCH_JOB_WORKLOAD_FLAGS_H_
#define SLUICE_BENCH_JOB_WORKLOAD_FLAGS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "workload/inline_case.h"
#include "workload/model_file.h"
#include "workload/workload.h"

namespace CLI {
class App;
}

namespace sluice::bench {

struct WorkloadOptions {
  std::string cases_file;
  bool list_presets = false;
  std::string preset;
  std::optional<int> tensors;  // of a preset (2) or of the flags' shape (1)
  std::string model_file;
  std::string system_file;
  ModelCut cut;
  std::string replicas;      // of the system: a list; empty: 1
  InlineFlags inline_flags;  // shape and dtype also go with a preset
};

// Gives `app` the flags, which write to `options`; `options` must live as long as `app` is used.
void AddWorkloadFlags(CLI::App* app, WorkloadOptions* options);

// The cases that the flags ask for. InvalidArgument if they ask for none, or for two kinds; errors
// of files name the file.
absl::StatusOr<Workload> MakeWorkload(const WorkloadOptions& options);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_WORKLOAD_FLAGS_H_
