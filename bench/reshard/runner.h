// Runs cases: brings the ranks together, moves, times, checks and collects.
//
// All ranks do the same in the same order. What it decides is only who failed and whether to go on.
#ifndef SLUICE_BENCH_RESHARD_RUNNER_H_
#define SLUICE_BENCH_RESHARD_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "job/ranks.h"
#include "memory/mapped_memory.h"
#include "memory/memory_watch.h"
#include "report/progress_bar.h"
#include "reshard/baseline_runs.h"
#include "reshard/case_memory.h"
#include "reshard/lanes.h"
#include "reshard/options.h"
#include "reshard/result.h"
#include "sluice/session.h"
#include "workload/workload.h"

namespace sluice::bench {

class Runner {
 public:
  // All but the lanes must outlive the runner.
  Runner(const Options* options, Ranks* ranks, BaselineRuns* baselines, std::vector<Lane> lanes)
      : options_(options),
        ranks_(ranks),
        baselines_(baselines),
        lanes_(std::move(lanes)),
        bar_(ranks->rank() == 0) {}

  // Collective. Runs one case on all lanes and baselines, in turns: rank 0 gets a result per lane,
  // others none. An error is the same on all ranks; if the sessions are still good for other cases,
  // `fatal` is false. `label`: for the progress bar.
  absl::StatusOr<std::vector<CaseResult>> Run(const Case& entry, const std::string& label,
                                              bool* fatal);

  // Collective. Writes what has been recorded since the first case's warm-up, if that is wanted;
  // rank 0 gets a line about it.
  absl::StatusOr<std::string> WriteTrace();

  absl::Status Close();

 private:
  struct LaneRun {
    Transfer* transfer = nullptr;
    size_t memory = 0;  // which of the case's
    RankRecord record;
    std::unique_ptr<MemoryWatch> watch;  // of all iterations
    MappedMemory grown;                  // of the negative control
  };

  absl::StatusOr<std::vector<CaseResult>> RunCase(const Case& entry, bool* fatal);
  absl::Status Poll();
  // The lanes whose sessions share memory between ranks. Such memory is fastest in the session that
  // has made it, so each of these lanes has tensors of its own. The first of these lanes lends its
  // tensors to all other lanes and the baselines.
  std::vector<size_t> LanesWithMemory() const;
  CasePlaces Places(size_t lane) const;
  absl::StatusOr<std::vector<CaseMemory>> MakeMemories(const Case& entry,
                                                       std::vector<LaneRun>* runs);
  // How long ranks may be apart while they fill and check `bytes` each.
  absl::Duration Patience(int64_t bytes) const;
  absl::Status CheckFits(const Case& entry) const;
  absl::StatusOr<std::vector<LaneRun>> Compile(const Case& entry, bool* fatal);
  absl::Status Move(Session* session, bool last, CaseMemory* memory, LaneRun* run);
  absl::Status Iterate(const Case& entry, std::vector<CaseMemory>* memories,
                       std::vector<LaneRun>* runs, bool* fatal);
  absl::Status TakeLaneTurn(const Case& entry, size_t lane, int iteration, CaseMemory* memory,
                            LaneRun* run);
  absl::Status TakeBaselineTurn(int iteration, CaseMemory* memory, BaselineRuns::Entry* baseline);
  // Poisons the targets, and times `move` from barrier to end. `watch`: of its memory, or null.
  absl::Status RunOnce(int iteration, CaseMemory* memory, MemoryWatch* watch, RankRecord* record,
                       absl::FunctionRef<absl::Status()> move);
  // Takes the memory that the negative control asks for.
  absl::Status Grow(LaneRun* run) const;
  void Finish(const Case& entry, CaseMemory* memory, LaneRun* run);
  // On rank 0 the records of all ranks; elsewhere nothing.
  absl::StatusOr<std::vector<RankRecord>> Gather(const RankRecord& mine);
  absl::StatusOr<std::vector<CaseResult>> Collect(const Case& entry,
                                                  const std::vector<LaneRun>& runs, bool* fatal);

  const Options* options_;
  Ranks* ranks_;
  BaselineRuns* baselines_;
  std::vector<Lane> lanes_;
  ProgressBar bar_;
  bool traced_ = false;     // a timed iteration has begun
  int64_t case_bytes_ = 0;  // of the largest rank of the current case
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_RUNNER_H_
