// What a program without MPI has in the place of what takes MPI.
#include "doctor/look_system.h"
#include "job/job.h"
#include "reshard/baselines/baseline.h"

namespace sluice::bench {
namespace {

absl::Status NotBuiltIn() {
  return absl::UnimplementedError("this program is built without MPI (SLUICE_MPI)");
}

}  // namespace

std::string MpiVersion() { return "no MPI"; }

MpiFacts LookAtMpi() { return {}; }

absl::StatusOr<std::unique_ptr<BaselineMaker>> MakeBaselineMaker(absl::Duration /*timeout*/) {
  return NotBuiltIn();
}

}  // namespace sluice::bench
