// What a target rank says about the memory it ended up with, for others to compare.
#ifndef SLUICE_BENCH_WORKLOAD_FINGERPRINT_H_
#define SLUICE_BENCH_WORKLOAD_FINGERPRINT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/tensor.h"
#include "workload/local_part.h"

namespace sluice::bench {

struct Fingerprint {
  std::vector<int64_t> local_shape;
  int64_t checksum = 0;           // sum of the values as integers
  uint64_t ordered_checksum = 0;  // sum of (position + 1) * value, modulo 2^64
  std::optional<int64_t> first;   // flat indices that the layout says are owned
  std::optional<int64_t> last;
};

// Of the dense local tensor at `data`, which `part` describes. A value that is no integer counts as
// the integer towards zero, one that is no number as 0.
Fingerprint TakeFingerprint(const LocalPart& part, DType dtype, const std::byte* data);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_FINGERPRINT_H_
