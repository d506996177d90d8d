// Sessions of the job of this process.
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "sluice/job.h"
#include "sluice/session.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

struct OwnJob {
  std::unique_ptr<Job> job;
  pid_t process = -1;
};

// Never destroyed: a process that exits with an error leaves the job's end to its launcher.
OwnJob* Own() {
  static auto* const kOwn = new OwnJob;
  return kOwn;
}

// For on_exit. MPI_Finalize would wait for ranks that do not know of an error here. The children of
// a fork are no ranks.
void EndJob(int code, void* /*unused*/) {
  if (code == 0 && Own()->process == getpid()) Own()->job = nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> OpenSession(const SessionOptions& options) {
  OwnJob* const own = Own();
  const JobOptions job = {.all_threads = options.progress_thread};
  if (own->job == nullptr) {
    SLUICE_ASSIGN_OR_RETURN(own->job, Job::Start(job));
    own->process = getpid();
    // After MPI's own handlers, so that it comes before them.
    on_exit(EndJob, nullptr);
  }
  if (own->process != getpid()) {
    return absl::FailedPreconditionError(
        "this process is a fork of one that has a job, and is no rank of the job");
  }
  SLUICE_ASSIGN_OR_RETURN(auto fabric, own->job->MakeFabric(job.timeout));
  return Session::Create(std::move(fabric), options);
}

}  // namespace sluice
