// A stretch of one tensor dimension that is consecutive on two sides.
#ifndef SLUICE_SRC_TENSOR_STRETCH_H_
#define SLUICE_SRC_TENSOR_STRETCH_H_

#include <cstdint>

namespace sluice {

// `length` consecutive positions of one dimension, on both sides.
struct Stretch {
  int64_t src = 0;     // first position on the source side
  int64_t dst = 0;     // first position on the destination side
  int64_t length = 0;  // at least 1

  friend bool operator==(const Stretch&, const Stretch&) = default;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_STRETCH_H_
