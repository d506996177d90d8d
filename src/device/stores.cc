// The choice between plain and streaming stores, by size.
#include "device/stores.h"

#include <cstdint>

#include "device/cache_share.h"

namespace sluice {

Stores StoresFor(int64_t bytes, int64_t cache_bytes) {
  return bytes > cache_bytes / 2 ? Stores::kStreaming : Stores::kPlain;
}

Stores ResolveStores(Stores stores, int64_t bytes) {
  return stores == Stores::kAuto ? StoresFor(bytes, CacheShareBytes()) : stores;
}

}  // namespace sluice
