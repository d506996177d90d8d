// One row, and the fence that its streaming stores need.
#include "device/copy_bytes.h"

#include <cstddef>
#include <cstdint>

#include "device/copy_rows.h"
#include "device/stores.h"
#include "device/stream_rows.h"

namespace sluice {

void CopyBytes(std::byte* dst, const std::byte* src, size_t bytes, Stores stores) {
  if (bytes == 0) return;  // from and to no memory at all
  const auto row_bytes = static_cast<int64_t>(bytes);
  const Stores resolved = ResolveStores(stores, row_bytes);
  CopyRows(src, dst, {}, row_bytes, resolved);
  if (resolved == Stores::kStreaming) StreamFence();
}

}  // namespace sluice
