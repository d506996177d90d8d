// What started this process, and which fabric its ranks are to have, by the environment alone.
#ifndef SLUICE_BENCH_JOB_LAUNCH_H_
#define SLUICE_BENCH_JOB_LAUNCH_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace sluice::bench {

enum class FabricKind : uint8_t {
  kMpi,
  kWorld,  // sluice/world.h
  kAlone,  // one process
};

struct Launch {
  FabricKind fabric = FabricKind::kAlone;
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

// What `flag`, the value of --fabric, comes to: auto, mpi or world. A process alone has MPI's
// fabric where MPI is built in. InvalidArgument: that takes MPI, which is not built in; or `flag`
// is none of these.
absl::StatusOr<FabricKind> ChooseFabric(const std::string& flag, const Launch& launch,
                                        bool has_mpi);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_LAUNCH_H_
