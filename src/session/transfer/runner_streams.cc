// How a runner begins and ends runs in the order of a stream of the caller's.
#include "session/runner.h"

namespace sluice {

absl::Status Runner::BeginInStream(TransferRun* run) {
  const bool network_is_behind = in_stream_order_ || !transport_->traits().takes_device_memory;
  return run->BeginInStream(device_.get(), {in_stream_order_, network_is_behind});
}

absl::StatusOr<bool> Runner::EndInStream(TransferRun* run) { return run->EndInStream(&copies_); }

absl::StatusOr<bool> Runner::PollStreams() {
  bool moved = false;
  for (TransferRun* const run : runs_) {
    if (!run->in_stream()) continue;
    const absl::StatusOr<bool> advanced = run->AdvanceInStream(&copies_);
    if (!advanced.ok()) return advanced.status();
    moved = moved || *advanced;
  }
  return moved;
}

}  // namespace sluice
