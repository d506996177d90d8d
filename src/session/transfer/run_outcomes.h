// Keeps the outcomes of runs that are over: which were cancelled, and how those that failed
// ended. Exact however long the session lives, in a bit per run at most.
#ifndef SLUICE_SRC_SESSION_TRANSFER_RUN_OUTCOMES_H_
#define SLUICE_SRC_SESSION_TRANSFER_RUN_OUTCOMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "session/base/run_id.h"
#include "sluice/session.h"

namespace sluice {

// A set of runs. Memory only where there are some.
class RunSet {
 public:
  // True if the run was not in the set before.
  bool Insert(RunId run);
  bool Has(RunId run) const;

 private:
  static constexpr int64_t kWords = 64;
  static constexpr int64_t kPageRuns = 64 * kWords;

  std::map<int64_t, std::array<uint64_t, kWords>> pages_;  // by run / kPageRuns
};

class RunOutcomes {
 public:
  // Statuses of so many runs are kept whole; of older ones, the code.
  static constexpr size_t kWholeMax = 256;

  // The run has ended with `status`, which is not OK.
  void Add(RunId run, const absl::Status& status);
  // OK for a run that was not added.
  absl::Status Of(RunId run) const;

  static absl::Status Cancelled(RunId run);

 private:
  std::map<RunId, absl::Status> newest_;
  std::map<absl::StatusCode, RunSet> older_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_RUN_OUTCOMES_H_
