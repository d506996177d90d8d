// Folds a row into what is there.
#include "device/reduction.h"

#include <array>
#include <cstddef>

#include "device/fold_rows.h"
#include "tensor/check.h"

namespace sluice {

void Reduce(const Reduction& reduction) {
  SLUICE_CHECK(reduction.elements >= 0, "reduction: fewer than no elements");
  const std::array<const std::byte*, 2> sources = {reduction.dst, reduction.src};
  RowFold(reduction.op, reduction.dtype, reduction.divisor)
      .Fold(sources, reduction.dst, reduction.elements, WriteHint::kPlain);
}

}  // namespace sluice
