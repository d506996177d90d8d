// The job that this process is a rank of, whatever started the process: mpirun, torchrun, srun,
// scripts/spawn.sh, or a shell, which starts one process alone.
//
//   absl::StatusOr<std::unique_ptr<sluice::Session>> session = sluice::OpenSession();
//
// Programs under mpirun link sluice::mpi. Others need sluice::sluice alone.
#ifndef SLUICE_JOB_H_
#define SLUICE_JOB_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "sluice/fabric.h"
#include "sluice/session.h"

namespace sluice {

// A session of all ranks of the job. Collective; may be called any number of times, in one order on
// all ranks. The first call starts a Job for the whole process, as JobOptions{} say. Over MPI that
// call has MPI_THREAD_MULTIPLE if its options have a progress thread.
//
// The job ends with the process, by exit or the return of main. Sessions must have been destroyed
// by then. An exit code other than 0 skips the orderly end, so that launchers end the other ranks.
// Errors are those of Job::Start, Job::MakeFabric and Session::Create.
// Thread: one at a time. Over MPI the main thread, unless MPI has been initialised for others.
absl::StatusOr<std::unique_ptr<Session>> OpenSession(const SessionOptions& options = {});

enum class JobKind : uint8_t {
  kMpi,
  kWorld,  // sluice/world.h
  kAlone,  // one process
};

struct JobOptions {
  // Without it, the environment decides. SLUICE_WORLD comes first, then mpirun and other launchers
  // of MPI, then SLUICE_RANK, torchrun, and a step of srun. A process that nothing has started as a
  // rank is alone, unless it has initialised MPI.
  absl::optional<JobKind> kind = absl::nullopt;
  // Has MPI_THREAD_MULTIPLE, where Start initialises MPI. Progress threads need it.
  bool all_threads = false;
  // How long ranks wait in Start for the store of their world, and then for each other. A
  // SLUICE_WORLD_TIMEOUT comes before it.
  absl::Duration timeout = absl::Minutes(5);
};

// For programs that need several fabrics, or the end of the job in their own hands.
// Thread: as OpenSession.
class Job {
 public:
  // Collective. Joins the world that the environment names, or initialises MPI unless that has been
  // done. The job of MPI is MPI_COMM_WORLD.
  // * InvalidArgument: mpirun has started several ranks, or `kind` says MPI, and the program does
  //   not link sluice::mpi; or a variable is wrong or missing, and is named.
  // * FailedPrecondition: MPI is finalised.
  // * Otherwise as World::Join and World::MakeFabric.
  static absl::StatusOr<std::unique_ptr<Job>> Start(const JobOptions& options = {});

  // The orderly end on this rank, after all that was made here is gone. Leaves the world, or
  // finalises MPI if Start has initialised MPI.
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  JobKind kind() const { return kind_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  // For people: "mpi", "world at tcp://10.0.0.1:29600", "none: one process".
  virtual std::string Describe() const = 0;

  // Collective, in the same order on all ranks; may be called any number of times. `timeout`: for
  // the ranks to come together, here and in each OpenTransport of MPI's fabric.
  virtual absl::StatusOr<std::unique_ptr<Fabric>> MakeFabric(absl::Duration timeout) = 0;

  // Ends this process, and the job as far as this process can end it: for errors.
  [[noreturn]] virtual void Abort(int code) = 0;

 protected:
  Job(JobKind kind, int rank, int size) : kind_(kind), rank_(rank), size_(size) {}

 private:
  const JobKind kind_;
  const int rank_;
  const int size_;
};

// Whether this program links sluice::mpi.
bool HasMpi();

}  // namespace sluice

#endif  // SLUICE_JOB_H_
