// The launcher of this process, and the kind of its job, by the environment alone.
#ifndef SLUICE_SRC_WORLD_LAUNCH_H_
#define SLUICE_SRC_WORLD_LAUNCH_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "sluice/job.h"

namespace sluice {

struct Launch {
  JobKind kind = JobKind::kAlone;
  int rank = 0;    // as the launcher says; 0 where it does not
  int size = 1;    // 0: the launcher does not say
  std::string by;  // "mpirun", "torchrun", ...; empty: nothing that starts ranks
};

// Gives the value of a variable, or null.
using Environment = absl::FunctionRef<const char*(const char*)>;

// SLUICE_WORLD comes first: whoever sets it wants a world, whatever starts the ranks. Then come
// launchers of MPI, SLUICE_RANK, torchrun, and a step of srun with several tasks. A batch script of
// Slurm has SLURM_NTASKS, too, but is one process. An empty variable counts as not set.
Launch ReadLaunch(Environment environment);

// The same of this process.
Launch OwnLaunch();

// The kind of the job of `launch`: `wanted`, if it is set. InvalidArgument: that takes MPI, which
// this program does not have.
absl::StatusOr<JobKind> ChooseKind(absl::optional<JobKind> wanted, const Launch& launch,
                                   bool has_mpi);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_LAUNCH_H_
