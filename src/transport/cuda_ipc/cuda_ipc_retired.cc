// First in, first out.
#include "transport/cuda_ipc_retired.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>

#include "device/cuda_error.h"

namespace sluice {
namespace {

struct Retired {
  std::mutex mutex;
  std::deque<cudaEvent_t> events;
};

Retired& TheRetired() {
  static auto* const retired = new Retired;  // there when the process ends
  return *retired;
}

}  // namespace

void RetireCudaEvents(const std::vector<cudaEvent_t>& events) {
  Retired& retired = TheRetired();
  const std::lock_guard lock(retired.mutex);
  retired.events.insert(retired.events.end(), events.begin(), events.end());
  const size_t kept = std::max(events.size(), kRetiredEventsMax);
  while (retired.events.size() > kept) {
    (void)CudaStatus(cudaEventDestroy(retired.events.front()), "cudaEventDestroy");
    retired.events.pop_front();
  }
}

}  // namespace sluice
