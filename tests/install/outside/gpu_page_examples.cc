// The examples of docs/gpus.md and docs/cluster.md, as they stand there: they compile.
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/cuda.h"
#include "sluice/nccl.h"
#include "sluice/session.h"

using namespace sluice;

absl::Status OneRankPerGpu() {
#include "cluster.inc"
  return gpu.status();
}

absl::Status OverNccl(absl::StatusOr<std::unique_ptr<Fabric>> fabric, int local_rank) {
#include "gpus.inc"
  return session.status();
}
