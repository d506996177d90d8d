// A copy of one stretch of host memory: memcpy that can pass the cache by.
#ifndef SLUICE_SRC_DEVICE_COPY_BYTES_H_
#define SLUICE_SRC_DEVICE_COPY_BYTES_H_

#include <cstddef>

#include "device/stores.h"

namespace sluice {

// Like memcpy, in whose order the arguments are. When it returns, its stores come before all that
// this thread stores from then on, as with memcpy.
void CopyBytes(std::byte* dst, const std::byte* src, size_t bytes, Stores stores = Stores::kAuto);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_COPY_BYTES_H_
