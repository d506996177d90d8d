// Reading the kernel's list of mappings.
#include "reshard/baselines/seen_memory.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include "tensor/stable_hash.h"

namespace sluice::bench {
namespace {

// Files of two machines may have the same numbers.
uint64_t ThisMachine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string name;
  file >> name;
  StableHash hash;
  hash.AddText(name);
  return hash.value();
}

}  // namespace

SeenMemory SeenMemory::OfThisProcess() {
  SeenMemory seen;
  const uint64_t machine = ThisMachine();
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    Mapping mapping = {};
    char access[5] = {};
    uint64_t major = 0;
    uint64_t minor = 0;
    SharedPlace& place = mapping.place;
    const int fields = std::sscanf(
        line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx64 ":%" SCNx64 " %" SCNu64,
        &mapping.begin, &mapping.end, access, &place.offset, &major, &minor, &place.inode);
    const bool is_shared = access[1] == 'w' && access[3] == 's';
    if (fields != 7 || place.inode == 0 || !is_shared) continue;
    place.machine = machine;
    place.device = (major << 32) | minor;
    seen.mappings_.push_back(mapping);
  }
  return seen;
}

SharedPlace SeenMemory::PlaceOf(const std::byte* data) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  for (const Mapping& mapping : mappings_) {
    if (address < mapping.begin || address >= mapping.end) continue;
    SharedPlace place = mapping.place;
    place.offset += address - mapping.begin;
    return place;
  }
  return {};
}

std::byte* SeenMemory::Find(const SharedPlace& place, uint64_t bytes) const {
  for (const Mapping& mapping : mappings_) {
    const SharedPlace& begin = mapping.place;
    const uint64_t size = mapping.end - mapping.begin;
    if (begin.machine != place.machine || begin.device != place.device ||
        begin.inode != place.inode || place.offset < begin.offset ||
        place.offset + bytes > begin.offset + size) {
      continue;
    }
    return reinterpret_cast<std::byte*>(mapping.begin + (place.offset - begin.offset));
  }
  return nullptr;
}

}  // namespace sluice::bench
