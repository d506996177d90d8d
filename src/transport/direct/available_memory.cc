// /proc/meminfo, and version 2 of control groups.
#include "transport/direct/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace sluice {
namespace {

constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

uint64_t ReadNumber(const char* path) {
  uint64_t number = 0;
  return std::ifstream(path) >> number ? number : kUnknown;
}

uint64_t AvailableInSystem() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  uint64_t kilobytes = 0;
  while (file >> name >> kilobytes) {
    if (name == "MemAvailable:") return kilobytes * 1024;
    std::getline(file, unit);
  }
  return kUnknown;
}

// The group's cached files, which go when memory is needed.
uint64_t CachedInGroup() {
  std::ifstream file("/sys/fs/cgroup/memory.stat");
  std::string name;
  uint64_t bytes = 0, cached = 0;
  while (file >> name >> bytes) {
    if (name == "inactive_file" || name == "active_file") cached += bytes;
  }
  return cached;
}

uint64_t AvailableInGroup() {
  const uint64_t most = ReadNumber("/sys/fs/cgroup/memory.max");
  const uint64_t used = ReadNumber("/sys/fs/cgroup/memory.current");
  if (most == kUnknown || used == kUnknown) return kUnknown;
  const uint64_t kept = used - std::min(used, CachedInGroup());
  return most - std::min(most, kept);
}

}  // namespace

uint64_t AvailableMemory() { return std::min(AvailableInSystem(), AvailableInGroup()); }

}  // namespace sluice
