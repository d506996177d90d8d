// The job that this process is a rank of: what its ranks share, whatever started them.
#ifndef SLUICE_BENCH_JOB_JOB_H_
#define SLUICE_BENCH_JOB_JOB_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/launch.h"
#include "sluice/fabric.h"

namespace sluice::bench {

class Job {
 public:
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  virtual FabricKind kind() const = 0;
  int rank() const { return rank_; }
  int size() const { return size_; }
  // For reports: "Open MPI v4.1.4", or that there is none.
  virtual std::string mpi() const = 0;
  // For people: "world at tcp://10.0.0.1:29600".
  virtual std::string fabric() const = 0;

  // Collective, in the same order on all ranks; can be called any number of times.
  // `ranks_per_node`: 0: ranks that share a host do; N: every N ranks count as a node.
  virtual absl::StatusOr<std::unique_ptr<Fabric>> MakeFabric(int ranks_per_node,
                                                             absl::Duration timeout) = 0;

  // The orderly end on all ranks, after all that was made here is gone.
  virtual void Leave() = 0;
  // The end of this process, and of the job as far as this process can end it.
  [[noreturn]] virtual void Abort(int code) = 0;

 protected:
  Job(int rank, int size) : rank_(rank), size_(size) {}

 private:
  const int rank_;
  const int size_;
};

struct JobOptions {
  std::string fabric = "auto";  // as --fabric
  bool all_threads = false;     // MPI_THREAD_MULTIPLE
  absl::Duration timeout;       // for ranks to come together
  int* argc = nullptr;          // main's
  char*** argv = nullptr;
};

// Collective over the world that the environment names. Waits up to `timeout`, or as long as
// SLUICE_WORLD_TIMEOUT says, for the store, and then for the other ranks. Errors as World::Join and
// World::MakeFabric.
absl::StatusOr<std::unique_ptr<Job>> JoinWorldJob(absl::Duration timeout);
// One process alone.
std::unique_ptr<Job> MakeJobAlone();
// As `options` say. Collective. InvalidArgument: flags or the environment are bad, or ask for what
// is not built in.
absl::StatusOr<std::unique_ptr<Job>> StartJob(const JobOptions& options);

// ---- What is different in programs with and without MPI: mpi_job.cc has these with MPI, and
// without_mpi.cc has them without.

bool HasMpi();
// The library's name and version, as reports give it; "none".
std::string MpiVersion();
// Initialises MPI; the job is MPI_COMM_WORLD.
absl::StatusOr<std::unique_ptr<Job>> StartMpiJob(const JobOptions& options);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_JOB_H_
