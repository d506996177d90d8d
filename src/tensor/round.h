// Division that rounds up.
#ifndef SLUICE_SRC_TENSOR_ROUND_H_
#define SLUICE_SRC_TENSOR_ROUND_H_

#include <type_traits>

namespace sluice {

// The least whole number that is at least a / b, for b > 0.
template <typename Number>
constexpr Number CeilDiv(Number a, std::type_identity_t<Number> b) {
  return a / b + (a % b > 0 ? 1 : 0);
}

// The least multiple of `unit` that is at least `value`, for unit > 0.
template <typename Number>
constexpr Number RoundUp(Number value, std::type_identity_t<Number> unit) {
  return CeilDiv(value, unit) * unit;
}

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_ROUND_H_
