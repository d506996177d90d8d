// Answering a run's events with memory.
#include "reshard/windowed.h"

#include <sched.h>

#include <algorithm>

#include "sluice/status.h"

namespace sluice::bench {
namespace {

absl::Status Handle(const Event& event, const WindowedChecks& checks, CaseMemory* memory,
                    MemoryWatch* watch, RankRecord* record) {
  const auto tensor = static_cast<size_t>(std::max(event.tensor, 0));
  switch (event.kind) {
    case Event::Kind::kNeedsMemory: {
      watch->Pause();
      absl::Status status = memory->AllocateTarget(tensor);
      watch->Resume(memory->target_bytes());
      if (!status.ok()) return status;
      record->peak_target_bytes = std::max(record->peak_target_bytes, memory->target_bytes());
      return event.run.Supply(event.tensor, memory->dst()[tensor]);
    }
    case Event::Kind::kTensorDone:
      SLUICE_RETURN_IF_ERROR(memory->FetchTarget(tensor));
      if (checks.count_wrong) record->wrong += memory->CountWrongTarget(tensor);
      if (checks.fingerprint && memory->HoldsTarget(tensor)) {
        record->fingerprints.emplace_back(event.tensor, memory->FingerprintOf(tensor));
      }
      watch->Pause();
      memory->FreeTarget(tensor);
      watch->Resume(memory->target_bytes());
      return absl::OkStatus();
    case Event::Kind::kFailed:
      return event.status;
  }
  return absl::OkStatus();
}

}  // namespace

void AssignWindows(int per_window, TransferSpec* spec) {
  for (size_t i = 0; i < spec->tensors.size(); ++i) {
    spec->tensors[i].window = static_cast<int>(i) / per_window;
  }
}

absl::Status RunWindowed(Session* session, Transfer* transfer, const WindowedChecks& checks,
                         CaseMemory* memory, MemoryWatch* watch, RankRecord* record) {
  StartOptions options;
  options.late_destinations = true;
  SLUICE_ASSIGN_OR_RETURN(const auto run,
                          session->Start(transfer, memory->src(), memory->dst(), options));
  bool done = false;
  while (!done) {
    done = run.IsDone();
    if (!done) SLUICE_RETURN_IF_ERROR(session->Poll());
    bool any = false;
    Event event;
    while (session->PollEvent(&event)) {
      any = true;
      SLUICE_RETURN_IF_ERROR(Handle(event, checks, memory, watch, record));
    }
    if (!any) sched_yield();
  }
  return run.Wait();
}

}  // namespace sluice::bench
