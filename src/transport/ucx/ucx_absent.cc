// Stands in for the worker where UCX's headers were missing when this was built.
#include "transport/ucx/ucx_worker.h"

namespace sluice {

absl::StatusOr<std::shared_ptr<UcxWorker>> UcxWorker::Create(UcxTcp /*tcp*/) {
  return absl::UnavailableError(
      "this build has no payload over UCX: its headers were missing (Debian: libucx-dev)");
}

}  // namespace sluice
