// Casts of grids of equal pieces: what copy_rows.h does, for two types instead of one.
#ifndef SLUICE_SRC_DEVICE_CAST_GRID_H_
#define SLUICE_SRC_DEVICE_CAST_GRID_H_

#include <cstddef>
#include <cstdint>

#include "device/cast_rows.h"
#include "device/copy_rows.h"
#include "device/stores.h"

namespace sluice {

// Casts rows.count x columns.count pieces of `piece_elements` consecutive elements each. Source and
// destination must not overlap. CopyRows explains `stores`.
void CastGrid(const RowCast& cast, const std::byte* src, std::byte* dst, const CopyAxis& rows,
              const CopyAxis& columns, int64_t piece_elements, Stores stores);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CAST_GRID_H_
