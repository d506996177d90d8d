// The choice between plain and streaming stores, by size.
#include "device/stores.h"

#include <cstdint>

#include "device/cache_share.h"

namespace sluice {

WriteHint StoresFor(int64_t bytes, int64_t cache_bytes) {
  return bytes > cache_bytes / 2 ? WriteHint::kStreaming : WriteHint::kPlain;
}

WriteHint ResolveStores(WriteHint stores, int64_t bytes) {
  return stores == WriteHint::kAuto ? StoresFor(bytes, CacheShareBytes()) : stores;
}

}  // namespace sluice
