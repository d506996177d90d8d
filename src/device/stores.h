// Which stores a copy uses: plain ones, which leave what they write in the cache, or streaming
// ones, which pass the cache by.
//
// Before a plain store writes part of a line, the line is read; and it pushes out another one. A
// streaming store does neither, but whoever reads what it wrote has to fetch it from memory.
#ifndef SLUICE_SRC_DEVICE_STORES_H_
#define SLUICE_SRC_DEVICE_STORES_H_

#include <cstdint>

namespace sluice {

enum class Stores : uint8_t {
  kAuto,       // by the copy's own size, and this machine's cache
  kPlain,      // for what is read soon
  kStreaming,  // for large results; still plain for rows where streaming does not pay
};

// What suits `bytes` bytes that are written before any of them is read, if a CPU's share of the
// last cache has `cache_bytes`: never kAuto. What is read takes as much room as what is written.
Stores StoresFor(int64_t bytes, int64_t cache_bytes);

// `stores`, or on this machine what suits `bytes` bytes instead of kAuto. Thread: any.
Stores ResolveStores(Stores stores, int64_t bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_STORES_H_
