// How much of the last cache a CPU can count on.
#ifndef SLUICE_SRC_DEVICE_CACHE_SHARE_H_
#define SLUICE_SRC_DEVICE_CACHE_SHARE_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace sluice {

// The size of the last cache over the number of CPUs that share it. Looked up at the first call;
// where the system does not say, a few MiB. Thread: any.
int64_t CacheShareBytes();

// The same for the caches in `folder`, which has the form of /sys/devices/system/cpu/cpu0/cache;
// 0 if none can be read there.
int64_t CacheShareIn(absl::string_view folder);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CACHE_SHARE_H_
