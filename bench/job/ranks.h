// The benchmark's own exchanges between ranks, beside the session's: barriers and gathers, over a
// fabric of their own.
//
// Waits poll a session's errors and a deadline, too, so that a rank that has failed or gone silent
// ends them.
#ifndef SLUICE_BENCH_JOB_RANKS_H_
#define SLUICE_BENCH_JOB_RANKS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "sluice/fabric.h"

namespace sluice::bench {

// What has to be equal on all ranks, by name. The names are the same on all ranks.
using KnobList = std::vector<std::pair<std::string, int64_t>>;

// After such an error of one rank the others may have another one, or none: all of them end.
inline bool EndsAll(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status);
}

// One status for many ranks: OK if all are; otherwise who says what, ranks that say the same
// together.
absl::Status CombineStatuses(absl::Span<const absl::Status> status_by_rank);

// A fabric that says its ranks are on other nodes, to plan as if for a larger machine. With N ranks
// per node, ranks k*N .. k*N+N-1 of `fabric` form node k. `fabric` as it is if `ranks_per_node` is
// 0.
std::unique_ptr<Fabric> PlanNodes(std::unique_ptr<Fabric> fabric, int ranks_per_node);

class Ranks {
 public:
  // Called while waiting; an error ends the wait.
  using Progress = absl::FunctionRef<absl::Status()>;
  static absl::Status NoProgress() { return absl::OkStatus(); }

  // Collective over `fabric`, as are all calls below. From now on a line on stderr says at once
  // which rank of this host has ended, whatever this one is busy with.
  static absl::StatusOr<std::unique_ptr<Ranks>> Create(std::unique_ptr<Fabric> fabric,
                                                       absl::Duration timeout);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return fabric_->rank(); }
  int size() const { return fabric_->size(); }
  // Distinct host names, and which of them each rank is on.
  const std::vector<std::string>& hosts() const { return hosts_; }
  const std::vector<int>& host_of_rank() const { return host_of_rank_; }
  // This rank's place among those of its host.
  int local_rank() const;

  // DeadlineExceeded names the ranks that have not come. Unavailable names those of this host that
  // have ended. After any error the object is good for nothing but its destruction, or the end of
  // the process. A barrier is one all-gather of the fabric.
  absl::Status Barrier(absl::Duration timeout, Progress progress = NoProgress) {
    return Exchange("", nullptr, timeout, progress);
  }
  absl::StatusOr<std::vector<std::string>> AllGather(const std::string& record,
                                                     absl::Duration timeout,
                                                     Progress progress = NoProgress);
  // On rank 0 the records of all ranks; elsewhere nothing.
  absl::StatusOr<std::vector<std::string>> GatherToFirst(const std::string& record,
                                                         absl::Duration timeout, Progress progress);
  // One status for all: OK if every rank's `mine` is; see CombineStatuses.
  absl::Status AllOk(const absl::Status& mine, absl::Duration timeout,
                     Progress progress = NoProgress);
  // OK if all ranks have understood their flags and files and have equal knobs. Otherwise an error
  // on all ranks that names those that have not, or that differ.
  absl::Status Agree(const absl::Status& understood, const KnobList& knobs, absl::Duration timeout);

  // Where ranks may end as they like, no rank ends before all have come to their end. Ranks that
  // are gone are no error any more.
  void Part(absl::Duration timeout);

 private:
  class Watch;

  explicit Ranks(std::unique_ptr<Fabric> fabric);
  // To be called once, first.
  absl::Status FindHosts(absl::Duration timeout);
  // `records`: null where this rank wants none. The timeout counts anew when all have gone on.
  absl::Status Exchange(const std::string& record, std::vector<std::string>* records,
                        absl::Duration timeout, Progress progress);
  // To be called after `polls` looks in vain.
  void Pause(int64_t polls) const;

  const std::unique_ptr<Fabric> fabric_;
  RecordExchange exchange_;
  std::unique_ptr<Watch> watch_;
  std::vector<std::string> hosts_;
  std::vector<int> host_of_rank_;
  std::vector<int> missing_;
  bool shares_cpus_ = false;  // more ranks on this host than CPUs
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_RANKS_H_
