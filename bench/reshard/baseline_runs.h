// The baselines of a run: planned for each case, run beside the library into the same memory.
#ifndef SLUICE_BENCH_RESHARD_BASELINE_RUNS_H_
#define SLUICE_BENCH_RESHARD_BASELINE_RUNS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/ranks.h"
#include "reshard/baselines/baseline.h"
#include "reshard/case_memory.h"
#include "reshard/result.h"

namespace sluice::bench {

// At most how many bytes the buffers of the baselines `names` take, over all ranks of a job.
int64_t BaselineBytes(const std::vector<std::string>& names, const TransferSpec& spec);

class BaselineRuns {
 public:
  using Progress = std::function<absl::Status()>;

  // One baseline on this rank, for the present case.
  struct Entry {
    std::string name;
    std::unique_ptr<Baseline> baseline;  // null: `reason` says why it cannot carry out the case
    std::string reason;
    RankRecord record;  // times and wrong elements
  };

  // Collective. `names`: some of BaselineNames(); with none nothing is made. `ranks` must outlive
  // it.
  static absl::StatusOr<std::unique_ptr<BaselineRuns>> Create(const std::vector<std::string>& names,
                                                              Ranks* ranks, absl::Duration timeout);

  // Collective. Plans all baselines for a case that Session::Compile has accepted; `memory` must
  // live until Drop. Errors are those of ranks that were not heard of within `patience`.
  absl::Status Plan(const TransferSpec& spec, const CaseMemory& memory, absl::Duration patience,
                    const Progress& progress);

  // The entries that can be run.
  std::vector<Entry*> Runnable();
  const std::vector<Entry>& entries() const { return entries_; }

  // Collective. Waits no longer than `patience`, and no longer than `progress` is OK.
  absl::Status Run(Entry* entry, absl::Duration patience, const Progress& progress);

  // Frees what was made for the case.
  void Drop() { entries_.clear(); }

 private:
  BaselineRuns(std::vector<std::string> names, Ranks* ranks)
      : names_(std::move(names)), ranks_(ranks) {}

  std::vector<std::string> names_;
  Ranks* ranks_;
  std::unique_ptr<BaselineMaker> maker_;  // before the entries, which use its wire
  std::vector<Entry> entries_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_BASELINE_RUNS_H_
