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

uint64_t AvailableInGroup() {
  const uint64_t most = ReadNumber("/sys/fs/cgroup/memory.max");
  const uint64_t used = ReadNumber("/sys/fs/cgroup/memory.current");
  if (most == kUnknown || used == kUnknown) return kUnknown;
  return most - std::min(most, used);
}

}  // namespace

uint64_t AvailableMemory() { return std::min(AvailableInSystem(), AvailableInGroup()); }

}  // namespace sluice
