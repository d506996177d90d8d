// The benchmark's own exchanges between ranks, beside the session's: barriers and gathers.
//
// Nothing here blocks in MPI: everything is polled, together with a session's errors and a
// deadline, so that a rank that has failed or gone silent ends the wait.
#ifndef SLUICE_BENCH_JOB_RANKS_H_
#define SLUICE_BENCH_JOB_RANKS_H_

#include <mpi.h>

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

// The library's name and version, as reports give it.
std::string MpiVersion();

// After such an error of one rank the others may have another one, or none: all of them end.
inline bool EndsAll(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status);
}

class Ranks {
 public:
  // Called while waiting; an error ends the wait.
  using Progress = absl::FunctionRef<absl::Status()>;

  // Collective over MPI_COMM_WORLD, which is duplicated.
  static absl::StatusOr<std::unique_ptr<Ranks>> Create(absl::Duration timeout);
  ~Ranks();
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
  absl::Status Barrier(absl::Duration timeout, Progress progress);
  absl::StatusOr<std::vector<std::string>> AllGather(const std::string& record,
                                                     absl::Duration timeout, Progress progress);
  // One status for all: OK if every rank's `mine` is; see CombineStatuses.
  absl::Status AllOk(const absl::Status& mine, absl::Duration timeout, Progress progress);
  // On rank 0 the records of all ranks; elsewhere nothing.
  absl::StatusOr<std::vector<std::string>> GatherToFirst(const std::string& record,
                                                         absl::Duration timeout, Progress progress);

 private:
  // Starts a collective on request_.
  struct Collective {
    const char* name;
    absl::FunctionRef<int()> start;
  };

  explicit Ranks(MPI_Comm comm);
  // First the records' sizes, then the records, which come to lie in all_.
  absl::Status Exchange(const std::string& record, const Collective& sizes,
                        const Collective& records, absl::Duration timeout, Progress progress);
  absl::Status FindHosts(absl::Duration timeout);
  absl::Status Await(absl::Duration timeout, Progress progress);
  // To be called after `polls` looks in vain.
  void Pause(int64_t polls) const;
  // Ranks that do not answer any more, among those that wait at the same place.
  std::vector<int> SilentRanks();
  // The sizes that were gathered become offsets into `all_`; returns records after the gather.
  absl::Status LayOut();
  std::vector<std::string> Cut() const;

  MPI_Comm comm_;
  std::unique_ptr<RankProcesses> processes_;  // null: not known yet
  std::unique_ptr<RankWatch> watch_;
  int rank_ = -1;
  int size_ = 0;
  std::vector<std::string> hosts_;
  std::vector<int> host_of_rank_;
  bool shares_cpus_ = false;  // more ranks on this host than CPUs
  // Members, because MPI may still use them after an error.
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::string mine_;
  std::string all_;
  int mine_bytes_ = 0;
  std::vector<int> bytes_;
  std::vector<int> offsets_;
  std::vector<MPI_Request> roll_call_sends_;
  std::vector<MPI_Request> roll_call_receives_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_RANKS_H_
