// Keeps what was given up, for the whole process.
#include "device/cuda/cuda_given_up.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace sluice {
namespace {

struct Lanes {
  int ordinal;
  std::unique_ptr<CudaLanes> lanes;
};
struct Kept {
  std::byte* data;
  size_t bytes;
  int ordinal;
  DeviceMemory::Deleter free;
};

struct GivenUp {
  std::mutex mutex;
  std::vector<Lanes> lanes;
  std::vector<Kept> memory;
};

// Never destroyed: the runtime may end before.
GivenUp& TheGivenUp() {
  static auto* const given_up = new GivenUp;
  return *given_up;
}

// Moves to `idle` what is free now; false while some lanes have work.
bool TakeIdle(GivenUp& all, int ordinal, std::vector<Lanes>* idle_lanes,
              std::vector<Kept>* idle_memory) {
  const auto is_of = [ordinal](const auto& one) { return one.ordinal == ordinal; };
  const bool idle = std::all_of(all.lanes.begin(), all.lanes.end(), [&](const Lanes& one) {
    return !is_of(one) || one.lanes->IsIdle();
  });
  if (!idle) return false;
  const auto lanes = std::stable_partition(all.lanes.begin(), all.lanes.end(), std::not_fn(is_of));
  std::move(lanes, all.lanes.end(), std::back_inserter(*idle_lanes));
  all.lanes.erase(lanes, all.lanes.end());
  const auto kept = std::stable_partition(all.memory.begin(), all.memory.end(), std::not_fn(is_of));
  idle_memory->assign(kept, all.memory.end());
  all.memory.erase(kept, all.memory.end());
  return true;
}

}  // namespace

void GiveUpCudaLanes(int ordinal, std::unique_ptr<CudaLanes> lanes) {
  GivenUp& all = TheGivenUp();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.lanes.push_back({ordinal, std::move(lanes)});
}

bool KeptByGivenUpLanes(std::byte* data, size_t bytes, int ordinal, DeviceMemory::Deleter free) {
  FreeGivenUp(ordinal);
  GivenUp& all = TheGivenUp();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const bool keeps = std::any_of(all.lanes.begin(), all.lanes.end(),
                                 [ordinal](const Lanes& one) { return one.ordinal == ordinal; });
  if (keeps) all.memory.push_back({data, bytes, ordinal, free});
  return keeps;
}

void FreeGivenUp(int ordinal) {
  std::vector<Lanes> lanes;
  std::vector<Kept> memory;
  {
    GivenUp& all = TheGivenUp();
    const std::lock_guard<std::mutex> lock(all.mutex);
    if (all.lanes.empty() || !TakeIdle(all, ordinal, &lanes, &memory)) return;
  }
  for (const Kept& one : memory) one.free(one.data, one.bytes, one.ordinal);
}

}  // namespace sluice
