// Symbols of contributions and of what they reduce to.
#include "plan/values.h"

#include <cstddef>

#include "oracle/brute_layout.h"
#include "tensor/stable_hash.h"

namespace sluice::oracle {
namespace {

// The Partial mesh dimensions that have anything to reduce, in groups that are reduced at once.
std::vector<std::vector<size_t>> PartialDims(const TensorTransfer& tensor) {
  std::vector<std::vector<size_t>> groups;
  for (size_t m = 0; m < tensor.src.placements.size(); ++m) {
    const Placement& placement = tensor.src.placements[m];
    if (placement.kind != Placement::Kind::kPartial || tensor.src.mesh.sizes()[m] == 1) continue;
    const bool joins = placement.op != ReduceOp::kAvg && placement.op != ReduceOp::kProduct &&
                       !groups.empty() &&
                       tensor.src.placements[groups.back()[0]].op == placement.op;
    if (!joins) groups.emplace_back();
    groups.back().push_back(m);
  }
  return groups;
}

// `coordinates`: of the mesh; those along other dimensions do not count.
Value Contribution(const TensorTransfer& tensor, int tensor_index, int64_t element,
                   absl::Span<const int64_t> coordinates) {
  StableHash hash;
  hash.AddSigned(tensor_index);
  hash.AddSigned(element);
  for (const std::vector<size_t>& group : PartialDims(tensor)) {
    for (const size_t m : group) hash.AddSigned(coordinates[m]);
  }
  return hash.value();
}

// Calls `visit` with each combination of coordinates along `dims`, the last one fastest.
template <typename Visit>
void ForEach(const Mesh& mesh, absl::Span<const size_t> dims, std::vector<int64_t>* coordinates,
             const Visit& visit) {
  if (dims.empty()) return visit();
  for (int64_t c = 0; c < mesh.sizes()[dims[0]]; ++c) {
    (*coordinates)[dims[0]] = c;
    ForEach(mesh, dims.subspan(1), coordinates, visit);
  }
}

// `groups` of Partial dimensions are still to be reduced; the coordinates along the others are set.
Value Nested(const TensorTransfer& tensor, int tensor_index, int64_t element,
             absl::Span<const std::vector<size_t>> groups, std::vector<int64_t>* coordinates) {
  if (groups.empty()) return Contribution(tensor, tensor_index, element, *coordinates);
  std::vector<Value> values;
  ForEach(tensor.src.mesh, groups.back(), coordinates, [&] {
    values.push_back(
        Nested(tensor, tensor_index, element, groups.first(groups.size() - 1), coordinates));
  });
  return ReducedValue(tensor.src.placements[groups.back()[0]].op, values);
}

}  // namespace

size_t PartialLevels(const TensorTransfer& tensor) { return PartialDims(tensor).size(); }

Value HeldValue(const TensorTransfer& tensor, int tensor_index, int64_t element, int rank) {
  return Contribution(tensor, tensor_index, element, *Coordinates(tensor.src.mesh, rank));
}

Value ReducedValue(ReduceOp op, absl::Span<const Value> values) {
  StableHash hash;
  hash.AddText("reduced");
  hash.Add(static_cast<uint64_t>(op));
  for (const Value value : values) hash.Add(value);
  return hash.value();
}

Value ExpectedValue(const TensorTransfer& tensor, int tensor_index, int64_t element) {
  std::vector<int64_t> coordinates(tensor.src.placements.size());
  return Nested(tensor, tensor_index, element, PartialDims(tensor), &coordinates);
}

}  // namespace sluice::oracle
