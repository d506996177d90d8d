// The memory that processes of this system may still take.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_AVAILABLE_MEMORY_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_AVAILABLE_MEMORY_H_

#include <cstdint>

namespace sluice {

// In bytes, as the kernel estimates it, and within the limit of the control group that this process
// sees as the root of all. The largest number where the system does not say.
uint64_t AvailableMemory();

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_AVAILABLE_MEMORY_H_
