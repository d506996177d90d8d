// Reading --fabric.
#include "job/job.h"

#include "absl/strings/str_cat.h"
#include "world/launch.h"

namespace sluice::bench {

absl::StatusOr<std::unique_ptr<Job>> StartJob(const std::string& fabric, bool all_threads,
                                              absl::Duration timeout) {
  JobOptions options = {.all_threads = all_threads, .timeout = timeout};
  if (fabric == "world") {
    options.kind = JobKind::kWorld;
  } else if (fabric == "mpi") {
    if (!HasMpi()) {
      return absl::InvalidArgumentError("--fabric mpi: this program is built without MPI");
    }
    options.kind = JobKind::kMpi;
  } else if (fabric != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("--fabric: \"", fabric, "\" is not one of auto, mpi, world"));
  } else if (HasMpi() && OwnLaunch().kind == JobKind::kAlone) {
    options.kind = JobKind::kMpi;
  }
  return Job::Start(options);
}

}  // namespace sluice::bench
