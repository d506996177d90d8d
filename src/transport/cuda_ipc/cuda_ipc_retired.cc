// First in, first out.
#include "transport/cuda_ipc/cuda_ipc_retired.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>

#include "device/cuda/cuda_current.h"
#include "device/cuda/cuda_error.h"

namespace sluice {
namespace {

struct Event {
  int ordinal;
  cudaEvent_t event;
};

struct Retired {
  std::mutex mutex;
  std::deque<Event> events;
};

Retired& TheRetired() {
  static auto* const retired = new Retired;  // there when the process ends
  return *retired;
}

}  // namespace

void RetireCudaEvents(int ordinal, const std::vector<cudaEvent_t>& events) {
  Retired& retired = TheRetired();
  const std::lock_guard lock(retired.mutex);
  for (const cudaEvent_t event : events) retired.events.push_back({ordinal, event});
  const size_t kept = std::max(events.size(), kRetiredEventsMax);
  while (retired.events.size() > kept) {
    const CurrentCudaDevice current(retired.events.front().ordinal);
    (void)CudaStatus(cudaEventDestroy(retired.events.front().event), "cudaEventDestroy");
    retired.events.pop_front();
  }
}

}  // namespace sluice
