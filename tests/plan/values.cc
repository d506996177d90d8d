// Symbols of contributions and of what they reduce to.
#include "plan/values.h"

#include <cstddef>

#include "oracle/brute_layout.h"
#include "tensor/stable_hash.h"

namespace sluice::oracle {
namespace {

// The Partial mesh dimensions that have anything to reduce.
std::vector<size_t> PartialDims(const TensorTransfer& tensor) {
  std::vector<size_t> dims;
  for (size_t m = 0; m < tensor.src.placements.size(); ++m) {
    const bool partial = tensor.src.placements[m].kind == Placement::Kind::kPartial;
    if (partial && tensor.src.mesh.sizes()[m] > 1) dims.push_back(m);
  }
  return dims;
}

// `coordinates`: along the Partial dimensions.
Value Contribution(int tensor_index, int64_t element, absl::Span<const int64_t> coordinates) {
  StableHash hash;
  hash.AddSigned(tensor_index);
  hash.AddSigned(element);
  for (const int64_t coordinate : coordinates) hash.AddSigned(coordinate);
  return hash.value();
}

// The first `open` Partial dimensions are still to be reduced; the coordinates of the others are
// set.
Value Nested(const TensorTransfer& tensor, int tensor_index, int64_t element,
             absl::Span<const size_t> dims, size_t open, std::vector<int64_t>* coordinates) {
  if (open == 0) return Contribution(tensor_index, element, *coordinates);
  const size_t m = dims[open - 1];
  std::vector<Value> values;
  for (int64_t c = 0; c < tensor.src.mesh.sizes()[m]; ++c) {
    (*coordinates)[open - 1] = c;
    values.push_back(Nested(tensor, tensor_index, element, dims, open - 1, coordinates));
  }
  return ReducedValue(tensor.src.placements[m].op, values);
}

}  // namespace

Value HeldValue(const TensorTransfer& tensor, int tensor_index, int64_t element, int rank) {
  const std::vector<int64_t> all = *Coordinates(tensor.src.mesh, rank);
  std::vector<int64_t> coordinates;
  for (const size_t m : PartialDims(tensor)) coordinates.push_back(all[m]);
  return Contribution(tensor_index, element, coordinates);
}

Value ReducedValue(ReduceOp op, absl::Span<const Value> values) {
  StableHash hash;
  hash.AddText("reduced");
  hash.Add(static_cast<uint64_t>(op));
  for (const Value value : values) hash.Add(value);
  return hash.value();
}

Value ExpectedValue(const TensorTransfer& tensor, int tensor_index, int64_t element) {
  const std::vector<size_t> dims = PartialDims(tensor);
  std::vector<int64_t> coordinates(dims.size());
  return Nested(tensor, tensor_index, element, dims, dims.size(), &coordinates);
}

}  // namespace sluice::oracle
