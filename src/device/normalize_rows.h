// The inner loops of normalizations, by the widest vectors at hand; normalization.h says what they
// compute.
#ifndef SLUICE_SRC_DEVICE_NORMALIZE_ROWS_H_
#define SLUICE_SRC_DEVICE_NORMALIZE_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "sluice/tensor.h"

namespace sluice {

// dst[i] = src[i] * scale + bias. Any alignment will do. The two sides must not overlap.
using NormalizeRow = void (*)(const std::byte* src, std::byte* dst, int64_t elements, float scale,
                              float bias);

// Null if there is none between these types.
NormalizeRow FindNormalize(DType from, DType to);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_NORMALIZE_ROWS_H_
