// Reductions and casts of dense stretches, as plain loops: what Partial placements and differing
// dtypes ask for.
#ifndef SLUICE_BENCH_WORKLOAD_REDUCE_H_
#define SLUICE_BENCH_WORKLOAD_REDUCE_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice::bench {

// One Partial mesh dimension.
struct ReduceStep {
  ReduceOp op;
  int64_t ranks;

  friend bool operator==(const ReduceStep&, const ReduceStep&) = default;
};

// Carries out `steps`, the first one first, in the order of the ranks. Each stretch has `count`
// elements, and there are as many stretches as the product of the steps' ranks. The rank of the
// first step counts fastest. Every single operation is rounded to `dtype`; integers wrap, and avg
// truncates. The result is in stretches[0]; the others lose their content.
void ReduceInPlace(absl::Span<const ReduceStep> steps, DType dtype, int64_t count,
                   absl::Span<std::byte* const> stretches);

// Whether ConvertElements has this cast: between floating types, and from any type to itself.
bool CanConvert(DType src_dtype, DType dst_dtype);

// Writes `count` elements at `src` to `dst` as another dtype, rounded to nearest even.
void ConvertElements(DType src_dtype, const std::byte* src, int64_t count, DType dst_dtype,
                     std::byte* dst);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_REDUCE_H_
