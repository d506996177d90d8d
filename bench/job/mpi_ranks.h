// Ranks that exchange over a communicator of MPI.
#ifndef SLUICE_BENCH_JOB_MPI_RANKS_H_
#define SLUICE_BENCH_JOB_MPI_RANKS_H_

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "job/ranks.h"

namespace sluice::bench {

class MpiRanks final : public Ranks {
 public:
  // Collective over MPI_COMM_WORLD, which is duplicated.
  static absl::StatusOr<std::unique_ptr<Ranks>> Create(absl::Duration timeout);
  ~MpiRanks() override;

  absl::Status Barrier(absl::Duration timeout, Progress progress) override;
  absl::StatusOr<std::vector<std::string>> AllGather(const std::string& record,
                                                     absl::Duration timeout,
                                                     Progress progress) override;
  absl::StatusOr<std::vector<std::string>> GatherToFirst(const std::string& record,
                                                         absl::Duration timeout,
                                                         Progress progress) override;

 private:
  // Starts a collective on request_.
  struct Collective {
    const char* name;
    absl::FunctionRef<int()> start;
  };

  MpiRanks(MPI_Comm comm, int rank, int size);
  // First the records' sizes, then the records, which come to lie in all_.
  absl::Status Exchange(const std::string& record, const Collective& sizes,
                        const Collective& records, absl::Duration timeout, Progress progress);
  absl::Status AwaitRequest(absl::Duration timeout, Progress progress);
  // Ranks that do not answer any more, among those that wait at the same place.
  std::vector<int> SilentRanks();
  // The sizes that were gathered become offsets into `all_`; returns records after the gather.
  absl::Status LayOut();
  std::vector<std::string> Cut() const;

  MPI_Comm comm_;
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

#endif  // SLUICE_BENCH_JOB_MPI_RANKS_H_
