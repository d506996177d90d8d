// Folds a row, and divides it piece by piece where that is asked for.
#include "device/reduction.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/float_mode.h"
#include "device/reduce_rows.h"
#include "sluice/tensor.h"
#include "tensor/check.h"

namespace sluice {
namespace {

// Elements that are folded and then divided at a time: they stay in the first cache meanwhile.
constexpr int64_t kPieceElements = 1024;

}  // namespace

void Reduce(const Reduction& reduction) {
  SLUICE_CHECK(reduction.elements >= 0, "reduction: fewer than no elements");
  const PromisedFloatMode mode;
  const FoldRow fold = FindFold(reduction.dtype, reduction.op);
  if (reduction.divisor <= 1) {
    return fold(reduction.dst, reduction.src, reduction.dst, reduction.elements);
  }
  const DivideRow divide = FindDivide(reduction.dtype);
  const int64_t bytes = DTypeBytes(reduction.dtype);
  for (int64_t i = 0; i < reduction.elements; i += kPieceElements) {
    const int64_t piece = std::min(kPieceElements, reduction.elements - i);
    std::byte* const dst = reduction.dst + i * bytes;
    fold(dst, reduction.src + i * bytes, dst, piece);
    divide(dst, piece, reduction.divisor);
  }
}

}  // namespace sluice
