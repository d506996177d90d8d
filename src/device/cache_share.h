// The share of the last cache that a CPU can count on.
#ifndef SLUICE_SRC_DEVICE_CACHE_SHARE_H_
#define SLUICE_SRC_DEVICE_CACHE_SHARE_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace sluice {

// The size of the last cache over the number of CPUs that share it, at most kCacheShareBytesMax.
// Looked up at the first call; where the system does not say, a few MiB. Thread: any.
int64_t CacheShareBytes();

// More than the share of a core in most processors of 2020 to 2026 (1 to 12 MiB). Only a virtual
// machine that shows its few CPUs the host's whole cache reports more.
inline constexpr int64_t kCacheShareBytesMax = int64_t{16} << 20;

// How many of `ranks` processes of this machine share a CPU when all are at work; at least 1.
double RanksPerCpu(int64_t ranks);

// The same for the caches in `folder`, which has the form of /sys/devices/system/cpu/cpu0/cache;
// 0 if none can be read there.
int64_t CacheShareIn(absl::string_view folder);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CACHE_SHARE_H_
