// Each thread's stack of contexts, and the device that it has chosen.
#include "fakes/fake_cuda_context.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_state.h"

namespace sluice {
namespace fake_cuda {
namespace {

// Threads keep what they have of contexts of an earlier epoch, and must not.
std::atomic<uint64_t> epoch = 0;

struct ThreadContexts {
  uint64_t epoch = 0;
  int chosen = 0;
  std::vector<int> stack;  // by device; the last is current
};

ThreadContexts& ThisThread() {
  thread_local ThreadContexts contexts;
  if (contexts.epoch != epoch) contexts = {.epoch = epoch, .chosen = 0, .stack = {}};
  return contexts;
}

void MakeContext(State& state, int device) {
  const auto index = static_cast<size_t>(device);
  if (index < state.devices.size()) state.devices[index].has_context = true;
}

}  // namespace

int CurrentDevice() {
  const ThreadContexts& contexts = ThisThread();
  return contexts.stack.empty() ? contexts.chosen : contexts.stack.back();
}

std::optional<int> CurrentContext() {
  const ThreadContexts& contexts = ThisThread();
  if (contexts.stack.empty()) return std::nullopt;
  return contexts.stack.back();
}

void ChooseDevice(State& state, int device) {
  ThreadContexts& contexts = ThisThread();
  contexts.chosen = device;
  if (!contexts.stack.empty()) contexts.stack.pop_back();
  PushContext(state, device);
}

void BindContext(State& state) {
  const ThreadContexts& contexts = ThisThread();
  if (contexts.stack.empty()) PushContext(state, contexts.chosen);
}

void PushContext(State& state, int device) {
  ThisThread().stack.push_back(device);
  MakeContext(state, device);
}

std::optional<int> PopContext() {
  ThreadContexts& contexts = ThisThread();
  if (contexts.stack.empty()) return std::nullopt;
  const int device = contexts.stack.back();
  contexts.stack.pop_back();
  return device;
}

DeviceSetAgain::~DeviceSetAgain() {
  auto [state, lock] = LockState();
  ChooseDevice(state, device_);
}

void ForgetContexts(State& state) {
  ++epoch;
  for (DeviceState& device : state.devices) device.has_context = false;
}

}  // namespace fake_cuda

bool FakeCudaHasContext(int device) {
  auto [state, lock] = fake_cuda::LockState();
  const auto index = static_cast<size_t>(device);
  return index < state.devices.size() && state.devices[index].has_context;
}

int FakeCudaCurrentContext() { return fake_cuda::CurrentContext().value_or(-1); }

}  // namespace sluice
