// Begins and ends a runner's runs in the order of a stream of the caller's.
#include <algorithm>

#include "session/transfer/runner.h"

namespace sluice {

absl::Status Runner::BeginInStream(TransferRun* run) {
  const bool in_stream_order = carrier_.in_stream_order();
  const bool network_is_behind =
      in_stream_order || !carrier_.transport()->traits().takes_device_memory;
  return run->BeginInStream(device_.get(), {in_stream_order, network_is_behind});
}

absl::StatusOr<bool> Runner::EndInStream(TransferRun* run) {
  return run->EndInStream(carrier_.copies());
}

bool Runner::IsHeldByCaller() const {
  return std::any_of(runs_.begin(), runs_.end(),
                     [](const TransferRun* run) { return run->IsHeldBack(); }) ||
         std::any_of(caller_marks_.begin(), caller_marks_.end(),
                     [](const auto& mark) { return !RunStream::HasPassed(*mark); });
}

absl::StatusOr<bool> Runner::PollOthers() {
  bool moved = false;
  for (TransferRun* const run : runs_) {
    if (!run->in_stream()) continue;
    const absl::StatusOr<bool> advanced = run->AdvanceInStream(carrier_.copies());
    if (!advanced.ok()) return advanced.status();
    moved = moved || *advanced;
  }
  return moved;
}

}  // namespace sluice
