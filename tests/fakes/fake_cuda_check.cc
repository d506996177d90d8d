// The check at the end of a test: what is left, and what nobody waited for.
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_context.h"
#include "fakes/fake_cuda_event.h"
#include "fakes/fake_cuda_state.h"
#include "fakes/fake_cuda_stream.h"
#include "fakes/locked.h"

namespace sluice {
namespace fake_cuda {
namespace {

// Of the libraries above.
struct Checks {
  std::mutex mutex;
  std::vector<void (*)()> checks;
};

Checks& TheChecks() {
  static auto* const checks = new Checks;
  return *checks;
}

void RunChecks() {
  const Locked checks(TheChecks());
  for (void (*const check)() : checks->checks) check();
}

void CheckMemory(State& state) {
  for (const auto& [base, allocation] : state.allocations) {
    const char* const kind = allocation.kind == MemoryKind::kDevice   ? "device memory never freed"
                             : allocation.kind == MemoryKind::kPinned ? "memory never unregistered"
                                                                      : "a mapping never closed";
    AddMisuse(std::string("left: ") + kind + ", " + std::to_string(allocation.bytes) +
              " bytes at " + Hex(PointerTo(base)));
  }
  // What the runtime still does with them may go on.
  static auto* const left = new std::vector<std::shared_ptr<SharedMemory>>;
  for (auto& [base, allocation] : state.allocations) {
    if (allocation.memory != nullptr) left->push_back(std::move(allocation.memory));
  }
  state.allocations.clear();
  state.blocks.clear();
}

void CheckStreams(State& state) {
  SeenByOthers(state);
  for (const auto& [handle, stream] : state.streams) {
    if (HasUnseenWork(*stream) && DeviceError(state, stream->device) == cudaSuccess) {
      AddMisuse(std::string("never waited for: ") + stream->last_work_name + " on stream " +
                Hex(PointerTo(handle)) + (stream->is_destroyed ? ", which was destroyed" : ""));
    }
    if (!stream->is_null && !stream->is_destroyed) {
      AddMisuse("left: a stream never destroyed, " + Hex(PointerTo(handle)));
    }
    if (stream->capture != nullptr) {
      AddMisuse("left: a capture never ended, of stream " + Hex(PointerTo(handle)));
    }
  }
  state.captures = 0;
  for (const auto& [handle, stream] : std::exchange(state.streams, {})) {
    stream->capture.reset();
    stream->links.clear();
    stream->exports.clear();
    Destroy(*stream);
  }
}

// One that others may open yet may be left: who made it does not hear when they have.
void CheckEvents(State& state) {
  auto exported = std::exchange(state.events, {});
  for (auto it = exported.begin(); it != exported.end();) {
    if (it->second->is_exported) {
      ++it;
      continue;
    }
    AddMisuse("left: an event never destroyed, " + Hex(PointerTo(it->first)));
    it = exported.erase(it);
  }
  state.events = std::move(exported);
  state.destroyed_events.clear();
}

}  // namespace

void AddCheck(void (*check)()) {
  const Locked checks(TheChecks());
  checks->checks.push_back(check);
}

}  // namespace fake_cuda

std::vector<std::string> FakeCudaCheckClean() {
  fake_cuda::RunChecks();
  fake_cuda::State& state = fake_cuda::TheState();
  {
    const fake_cuda::Lock lock(state.mutex);
    fake_cuda::CheckMemory(state);
    fake_cuda::CheckStreams(state);
    fake_cuda::CheckEvents(state);
    for (fake_cuda::DeviceState& device : state.devices) device = {};
    fake_cuda::ForgetContexts(state);
    state.held.clear();
  }
  fake_cuda::ForgetCalls();
  return fake_cuda::TakeMisuse();
}

}  // namespace sluice
