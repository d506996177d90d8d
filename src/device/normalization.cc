// Which normalizations there are, and the row that each one is.
#include "device/normalization.h"

#include "device/normalize_rows.h"
#include "sluice/tensor.h"
#include "tensor/check.h"

namespace sluice {

bool NormalizationExists(DType from, DType to) { return FindNormalize(from, to) != nullptr; }

void Normalize(const Normalization& normalization) {
  SLUICE_CHECK(normalization.elements >= 0, "normalization: fewer than no elements");
  const NormalizeRow row = FindNormalize(normalization.src_dtype, normalization.dst_dtype);
  SLUICE_CHECK(row != nullptr, "normalization: none between these types");
  row(normalization.src, normalization.dst, normalization.elements, normalization.scale,
      normalization.bias);
}

}  // namespace sluice
