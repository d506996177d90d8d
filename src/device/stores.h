// Chooses the store instructions that suit a copy.
//
// Before a plain store writes part of a line, the line is read; and it pushes out another one. A
// streaming store does neither, but whoever reads what it wrote has to fetch it from memory.
#ifndef SLUICE_SRC_DEVICE_STORES_H_
#define SLUICE_SRC_DEVICE_STORES_H_

#include <cstdint>

#include "sluice/transport.h"

namespace sluice {

// The stores that suit `bytes` bytes that are written before any of them is read: never kAuto. A
// CPU's share of the last cache has `cache_bytes`. Reads count as many bytes again.
WriteHint StoresFor(int64_t bytes, int64_t cache_bytes);

// `stores` unless they are kAuto; then what suits `bytes` bytes on this machine. Thread: any.
WriteHint ResolveStores(WriteHint stores, int64_t bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_STORES_H_
