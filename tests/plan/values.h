// What an element of a tensor is worth, in symbols.
#ifndef SLUICE_TESTS_PLAN_VALUES_H_
#define SLUICE_TESTS_PLAN_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "sluice/layout.h"
#include "sluice/transfer.h"

namespace sluice::oracle {

// Equal values: the same contributions, reduced by the same ops in the same order. A hash, so only
// almost surely.
using Value = uint64_t;

// How many reductions a target's values take, one after the other.
size_t PartialLevels(const TensorTransfer& tensor);

// What `rank`, which is in the source mesh, holds of the element with flat index `element`: equal
// for ranks that differ only along dimensions that are not Partial.
Value HeldValue(const TensorTransfer& tensor, int tensor_index, int64_t element, int rank);

// `values` reduced left to right.
Value ReducedValue(ReduceOp op, absl::Span<const Value> values);

// What a target must end with. Partial mesh dimensions are reduced one after the other, left to
// right, each in the order of its coordinates. Dimensions that follow one another and have the same
// op, sum, max or min, are reduced at once, in mesh order.
Value ExpectedValue(const TensorTransfer& tensor, int tensor_index, int64_t element);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_VALUES_H_
