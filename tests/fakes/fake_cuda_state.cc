// The tables, the configuration and the list of misuse.
#include "fakes/fake_cuda_state.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_cuda_context.h"
#include "fakes/fake_cuda_event.h"

namespace sluice {
namespace fake_cuda {
namespace {

// What programs without gtest leave with if they did something wrong.
constexpr int kMisuseExitCode = 86;

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoll(value, nullptr, 10);
}

// "2,0"
std::vector<int> VisibleDevices() {
  std::vector<int> devices;
  const char* const value = std::getenv("CUDA_VISIBLE_DEVICES");
  std::stringstream list(value == nullptr ? "" : value);
  for (std::string device; std::getline(list, device, ',');) {
    devices.push_back(static_cast<int>(std::strtol(device.c_str(), nullptr, 10)));
  }
  return devices;
}

size_t CountVisible(const FakeCudaConfig& config) {
  return config.visible.empty() ? static_cast<size_t>(config.devices) : config.visible.size();
}

FakeCudaConfig EnvironmentConfig() {
  FakeCudaConfig config;
  config.visible = VisibleDevices();
  config.devices = static_cast<int>(FromEnvironment("FAKE_CUDA_DEVICES", config.devices));
  const auto mib = static_cast<int64_t>(config.memory_bytes >> 20);
  config.memory_bytes = static_cast<size_t>(FromEnvironment("FAKE_CUDA_MEMORY_MIB", mib)) << 20;
  config.driver_version =
      static_cast<int>(FromEnvironment("FAKE_CUDA_DRIVER", config.driver_version));
  config.delay_us = static_cast<int>(FromEnvironment("FAKE_CUDA_DELAY_US", config.delay_us));
  config.seed = static_cast<uint64_t>(FromEnvironment("FAKE_CUDA_SEED", 1));
  config.same_process_ipc = FromEnvironment("FAKE_CUDA_SAME_PROCESS_IPC", 0) != 0;
  config.free_while_open = FromEnvironment("FAKE_CUDA_FREE_WHILE_OPEN", 0) != 0;
  return config;
}

struct MisuseList {
  std::mutex mutex;
  std::vector<std::string> what;
};

MisuseList& TheMisuse() {
  static auto* const list = new MisuseList;
  return *list;
}

// After all static objects are gone: who still has something then has forgotten it.
__attribute__((destructor)) void CheckAtExit() {
  const std::vector<std::string> misuse = FakeCudaCheckClean();
  for (const std::string& what : misuse) std::fprintf(stderr, "fake CUDA: %s\n", what.c_str());
  if (!misuse.empty()) _exit(kMisuseExitCode);
}

}  // namespace

State& TheState() {
  static auto* const state = [] {
    auto* const made = new State;
    made->config = EnvironmentConfig();
    made->devices.resize(CountVisible(made->config));
    return made;
  }();
  return *state;
}

void AddMisuse(std::string what) {
  MisuseList& list = TheMisuse();
  const std::lock_guard lock(list.mutex);
  list.what.push_back(std::move(what));
}

std::vector<std::string> TakeMisuse() {
  MisuseList& list = TheMisuse();
  const std::lock_guard lock(list.mutex);
  return std::exchange(list.what, {});
}

int CommonNumber(const State& state, int device) {
  const std::vector<int>& visible = state.config.visible;
  return visible.empty() ? device : visible[static_cast<size_t>(device)];
}

uintptr_t NewHandle(State& state) {
  state.next_handle += 0x10;
  return state.next_handle;
}

std::string Hex(const void* pointer) {
  char text[24];
  std::snprintf(text, sizeof(text), "%p", pointer);
  return text;
}

}  // namespace fake_cuda

void FakeCudaConfigure(const FakeCudaConfig& config) {
  auto [state, lock] = fake_cuda::LockState();
  // Events that others may open are left by those who have gone.
  const bool has_events = std::any_of(state.events.begin(), state.events.end(),
                                      [](const auto& entry) { return !entry.second->is_exported; });
  if (!state.allocations.empty() || has_events) {
    fake_cuda::AddMisuse("FakeCudaConfigure while the runtime is in use");
  }
  state.config = config;
  state.events_before = state.events.size();
  state.devices.clear();
  state.devices.resize(fake_cuda::CountVisible(config));
  state.held.clear();
  fake_cuda::ForgetContexts(state);
}

FakeCudaConfig FakeCudaConfiguration() {
  auto [state, lock] = fake_cuda::LockState();
  return state.config;
}

std::vector<std::string> FakeCudaMisuse() { return fake_cuda::TakeMisuse(); }

}  // namespace sluice
