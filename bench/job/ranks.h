// The benchmark's own exchanges between ranks, beside the session's: barriers and gathers.
//
// Nothing here blocks: everything is polled, together with a session's errors and a deadline, so
// that a rank that has failed or gone silent ends the wait.
#ifndef SLUICE_BENCH_JOB_RANKS_H_
#define SLUICE_BENCH_JOB_RANKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/rank_watch.h"
#include "transport/rank_processes.h"

namespace sluice::bench {

// After such an error of one rank the others may have another one, or none: all of them end.
inline bool EndsAll(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status);
}

class Ranks {
 public:
  // Called while waiting; an error ends the wait.
  using Progress = absl::FunctionRef<absl::Status()>;

  virtual ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Distinct host names, and which of them each rank is on.
  const std::vector<std::string>& hosts() const { return hosts_; }
  const std::vector<int>& host_of_rank() const { return host_of_rank_; }
  // This rank's place among those of its host.
  int local_rank() const;

  // All collective. DeadlineExceeded names the ranks that have not come. Unavailable names those of
  // this host that have ended. After any error the object is good for nothing but its destruction,
  // or the end of the process.
  virtual absl::Status Barrier(absl::Duration timeout, Progress progress) = 0;
  virtual absl::StatusOr<std::vector<std::string>> AllGather(const std::string& record,
                                                             absl::Duration timeout,
                                                             Progress progress) = 0;
  // On rank 0 the records of all ranks; elsewhere nothing.
  virtual absl::StatusOr<std::vector<std::string>> GatherToFirst(const std::string& record,
                                                                 absl::Duration timeout,
                                                                 Progress progress) = 0;
  // One status for all: OK if every rank's `mine` is; see CombineStatuses.
  absl::Status AllOk(const absl::Status& mine, absl::Duration timeout, Progress progress);

  // Collective. Where ranks may end as they like, no rank ends before all have come to their end.
  // Ranks that are gone are no error any more.
  virtual void Part(absl::Duration /*timeout*/) {}

 protected:
  Ranks(int rank, int size) : rank_(rank), size_(size) {}

  // Collective, to be called once, first. `own_host`: its name.
  absl::Status FindHosts(const std::string& own_host, absl::Duration timeout);
  // Calls `is_done` until it is true, or fails. After `timeout` `silent` says which ranks lack.
  absl::Status Await(absl::FunctionRef<absl::StatusOr<bool>()> is_done,
                     absl::FunctionRef<std::vector<int>()> silent, absl::Duration timeout,
                     Progress progress);

 private:
  // To be called after `polls` looks in vain.
  void Pause(int64_t polls) const;

  const int rank_;
  const int size_;
  std::unique_ptr<RankProcesses> processes_;  // null: not known yet
  std::unique_ptr<RankWatch> watch_;
  std::vector<std::string> hosts_;
  std::vector<int> host_of_rank_;
  bool shares_cpus_ = false;  // more ranks on this host than CPUs
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_RANKS_H_
