// Products of sizes that may not fit.
#ifndef SLUICE_SRC_TENSOR_CHECKED_H_
#define SLUICE_SRC_TENSOR_CHECKED_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/types/span.h"

namespace sluice {

// The product of non-negative factors, or nothing if it passes `limit`. A zero factor makes it 0,
// however large the others.
inline std::optional<int64_t> CheckedProduct(absl::Span<const int64_t> factors,
                                             int64_t limit = std::numeric_limits<int64_t>::max()) {
  for (int64_t factor : factors) {
    if (factor == 0) return 0;
  }
  int64_t product = 1;
  for (int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product) || product > limit) return std::nullopt;
  }
  return product;
}

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_CHECKED_H_
