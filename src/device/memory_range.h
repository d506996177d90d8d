// Which memory lies at an address, for those who keep what they know of it: memory that was freed,
// and had again at the same address, is other memory.
#ifndef SLUICE_SRC_DEVICE_MEMORY_RANGE_H_
#define SLUICE_SRC_DEVICE_MEMORY_RANGE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace sluice {

// One allocation.
struct MemoryRange {
  const std::byte* begin = nullptr;
  size_t bytes = 0;
  uint64_t id = 0;  // no other allocation of this process has or had it

  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

// What an accelerator is, too, if its runtime tells allocations apart. Thread: any.
class FindsMemory {
 public:
  virtual ~FindsMemory() = default;

  // The allocation of device memory with the byte at `data`; an error if there is none.
  virtual absl::StatusOr<MemoryRange> FindMemory(const void* data) const = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_MEMORY_RANGE_H_
