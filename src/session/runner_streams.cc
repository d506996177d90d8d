// How a runner begins and ends runs in the order of a stream of the caller's.
#include "session/runner.h"

namespace sluice {

// The host waits for the stream only where it touches memory itself, or the network does that comes
// after nothing.
absl::Status Runner::BeginInStream(TransferRun* run) {
  const absl::StatusOr<Fence*> fence = run->BeginFence(device_.get());
  if (!fence.ok()) return fence.status();
  if (absl::Status status = (*fence)->Record(run->stream()); !status.ok()) return status;
  const bool network_is_behind = in_stream_order_ || !transport_->traits().takes_device_memory;
  run->set_waits_for_stream(!network_is_behind || !run->OnDeviceOnly());
  return copies_.Order(*fence, nullptr).status();
}

absl::StatusOr<bool> Runner::EndInStream(TransferRun* run) {
  if (!in_stream_order_) return true;  // everything is complete
  const absl::StatusOr<Fence*> fence = run->EndFence(device_.get());
  if (!fence.ok()) return fence.status();
  if (run->end_order() == 0) {
    const absl::StatusOr<int64_t> order = copies_.Order(nullptr, *fence);
    if (!order.ok()) return order.status();
    run->set_end_order(*order);
  }
  if (!copies_.HasEnded(run->end_order())) return false;
  absl::Status status = (*fence)->HoldBack(run->stream());
  if (!status.ok()) return status;
  return true;
}

absl::StatusOr<bool> Runner::PollStreams() {
  bool passed_any = false;
  for (TransferRun* const run : runs_) {
    if (!run->waits_for_stream()) continue;
    const absl::StatusOr<Fence*> fence = run->BeginFence(device_.get());
    if (!fence.ok()) return fence.status();
    const absl::StatusOr<bool> passed = (*fence)->Passed();
    if (!passed.ok()) return passed.status();
    if (*passed) run->set_waits_for_stream(false);
    passed_any = passed_any || *passed;
  }
  return passed_any;
}

}  // namespace sluice
