// What the elements of one tensor on one rank must be.
#ifndef SLUICE_BENCH_WORKLOAD_VALUES_H_
#define SLUICE_BENCH_WORKLOAD_VALUES_H_

#include <cstddef>
#include <cstdint>

#include "sluice/tensor.h"

namespace sluice::bench {

class Values {
 public:
  explicit Values(DType dtype) : dtype_(dtype) {}
  virtual ~Values() = default;

  // Writes the global elements g, g + 1, .. g + count - 1 to `dst`, which needs no alignment beyond
  // the element's.
  virtual void Write(int64_t g, int64_t count, std::byte* dst) const = 0;

  DType dtype() const { return dtype_; }

 private:
  DType dtype_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_VALUES_H_
