// `sluice-bench doctor`: what makes this job slower than it could be, and what to do.
#ifndef SLUICE_TOOLS_DOCTOR_DOCTOR_H_
#define SLUICE_TOOLS_DOCTOR_DOCTOR_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "doctor/options.h"
#include "job/job.h"

namespace sluice::bench {

// Collective over all ranks of `job`. `flags` says whether they could be read. Returns what main
// returns, or ends the job.
int RunDoctor(absl::StatusOr<std::unique_ptr<Job>> job, const DoctorOptions& options,
              const absl::Status& flags);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_DOCTOR_DOCTOR_H_
