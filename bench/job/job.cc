// The job that the flag and the environment ask for.
#include "job/job.h"

namespace sluice::bench {

absl::StatusOr<std::unique_ptr<Job>> StartJob(const JobOptions& options) {
  const absl::StatusOr<FabricKind> kind = ChooseFabric(options.fabric, OwnLaunch(), HasMpi());
  if (!kind.ok()) return kind.status();
  switch (*kind) {
    case FabricKind::kMpi:
      return StartMpiJob(options);
    case FabricKind::kWorld:
      return JoinWorldJob(options.timeout);
    case FabricKind::kAlone:
      break;
  }
  return MakeJobAlone();
}

}  // namespace sluice::bench
