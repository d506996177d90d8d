// System files: how many ranks train and generate, and how each side is parallel.
#ifndef SLUICE_BENCH_WORKLOAD_SYSTEM_FILE_H_
#define SLUICE_BENCH_WORKLOAD_SYSTEM_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice::bench {

// Degrees of parallelism of one side. dp and cp only replicate, so they follow from the rest.
struct Parallelism {
  int64_t num_gpus = 1;
  int64_t tp_size = 1;
  int64_t cp_size = 1;
  int64_t ep_size = 1;
  int64_t pp_size = 1;
  int64_t fsdp_size = 1;
  int64_t dp_size = 1;

  int64_t stage_ranks() const { return num_gpus / pp_size; }
};

struct System {
  Parallelism train;       // ranks 0 .. train.num_gpus-1
  Parallelism generation;  // the ranks after those
  std::vector<std::string> notes;
};

// {"train": {"num_gpus", "tp_size", ..}, "generation": {..}}; sizes that are missing are 1.
// InvalidArgument names the side and the sizes that do not divide its ranks.
absl::StatusOr<System> ParseSystemFile(absl::string_view text);

// The same with so many times the data-parallel ranks on both sides. InvalidArgument if a side then
// has more ranks than a file may name, or none.
absl::Status Replicate(int64_t replicas, System* system);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_SYSTEM_FILE_H_
