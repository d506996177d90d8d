// An item's place in memory: how bytes get there, and how a consumer sees them.
#ifndef SLUICE_BENCH_STREAM_BASELINES_CELL_H_
#define SLUICE_BENCH_STREAM_BASELINES_CELL_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/optional.h"
#include "session/stream/stream_items.h"
#include "sluice/stream.h"
#include "sluice/tensor.h"

namespace sluice::bench {

// Copies `bytes` of an item, from `offset` on, to their place in `cell`; transforms them on the
// way. The library has checked the transform.
void CopyToCell(const absl::optional<ItemTransform>& transform, const StreamItems& items,
                int64_t item, const std::byte* src, int64_t offset, int64_t bytes, std::byte* cell);

// The whole item, once it is there.
TensorView ViewOfCell(const absl::optional<ItemTransform>& transform, const StreamItems& items,
                      int64_t item, std::byte* cell);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_BASELINES_CELL_H_
