// One operation after the other.
#include "device/carry_out.h"

#include <cstring>

#include "device/normalization.h"
#include "device/reduction.h"
#include "device/strided_copy.h"

namespace sluice {

void CarryOut(const CopyBatch& batch) {
  for (const StridedCopy& copy : batch.copies) CopyStrided(copy);
  for (const SmallCopy& copy : batch.small_copies) std::memcpy(copy.dst, copy.src, copy.bytes);
  for (const Reduction& reduction : batch.reductions) Reduce(reduction);
  for (const Normalization& normalization : batch.normalizations) Normalize(normalization);
}

}  // namespace sluice
