// The examples of docs/streaming.md and docs/checkpoints.md, as they stand there: they compile.
#include <vector>

#include "absl/status/status.h"
#include "sluice/checkpoint.h"
#include "sluice/session.h"
#include "sluice/stream.h"

using namespace sluice;

void Train(const TensorView& batch);

absl::Status Stream(Session* session, int rank, int replicas) {
#include "streaming.inc"
  return absl::OkStatus();
}

absl::Status Checkpoints(Session* session, const TensorView& part) {
#include "checkpoints.inc"
  return saved.status();
}
