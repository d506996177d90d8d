// Ownership by explicit lists of indices, word for word as the rule of layouts is stated.
//
// For tests: slow, obvious, and independent of src/. Reads only the public fields of a Layout.
#ifndef SLUICE_TESTS_ORACLE_BRUTE_LAYOUT_H_
#define SLUICE_TESTS_ORACLE_BRUTE_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "sluice/layout.h"

namespace sluice::oracle {

using IndexList = std::vector<int64_t>;

// Part i of n: step = ceil(len / n), list[min(i * step, len) : min((i + 1) * step, len)].
IndexList ChunkPart(const IndexList& list, int64_t n, int64_t i);

// The rank's coordinates in the mesh, or nothing if it is not in it.
std::optional<std::vector<int64_t>> Coordinates(const Mesh& mesh, int rank);

// The indices that `rank` owns along each dimension, or nothing if it is not in the mesh.
std::optional<std::vector<IndexList>> OwnedLists(const Layout& layout,
                                                 absl::Span<const int64_t> shape, int rank);

// The indices of a box along each dimension.
std::vector<IndexList> ListsOf(const Box& box);

// The row-major flat indices of the product of `lists`, in local row-major order.
IndexList FlatIndices(const std::vector<IndexList>& lists, absl::Span<const int64_t> shape);

// How many elements two products of ascending lists have in common.
int64_t CommonElements(const std::vector<IndexList>& a, const std::vector<IndexList>& b);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_ORACLE_BRUTE_LAYOUT_H_
