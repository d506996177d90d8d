// Ownership by explicit lists of indices; no interval arithmetic anywhere.
#include "oracle/brute_layout.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>

namespace sluice::oracle {

IndexList ChunkPart(const IndexList& list, int64_t n, int64_t i) {
  const auto length = static_cast<int64_t>(list.size());
  const int64_t step = (length + n - 1) / n;
  const int64_t begin = std::min(i * step, length);
  const int64_t end = std::min((i + 1) * step, length);
  return IndexList(list.begin() + begin, list.begin() + end);
}

std::optional<std::vector<int64_t>> Coordinates(const Mesh& mesh, int rank) {
  const auto ranks = mesh.ranks();
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  if (found == ranks.end()) return std::nullopt;
  int64_t rest = found - ranks.begin();
  std::vector<int64_t> coordinates(mesh.sizes().size());
  for (size_t d = coordinates.size(); d-- > 0;) {
    coordinates[d] = rest % mesh.sizes()[d];
    rest /= mesh.sizes()[d];
  }
  return coordinates;
}

std::optional<std::vector<IndexList>> OwnedLists(const Layout& layout,
                                                 absl::Span<const int64_t> shape, int rank) {
  const auto coordinates = Coordinates(layout.mesh, rank);
  if (!coordinates.has_value()) return std::nullopt;
  std::vector<IndexList> lists;
  for (const int64_t size : layout.whole.empty() ? shape : absl::MakeConstSpan(layout.whole)) {
    IndexList all(static_cast<size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    lists.push_back(all);
  }
  for (size_t visit = 0; visit < layout.placements.size(); ++visit) {
    const size_t m = layout.order.empty() ? visit : static_cast<size_t>(layout.order[visit]);
    const Placement& placement = layout.placements[m];
    const int64_t n = layout.mesh.sizes()[m];
    const int64_t c = (*coordinates)[m];
    if (placement.kind == Placement::Kind::kShard) {
      IndexList& list = lists[static_cast<size_t>(placement.dim)];
      list = ChunkPart(list, n, c);
    } else if (placement.kind == Placement::Kind::kStridedShard) {
      IndexList& list = lists[static_cast<size_t>(placement.dim)];
      IndexList kept;
      for (int64_t piece = 0; piece < placement.split_factor; ++piece) {
        const IndexList part = ChunkPart(ChunkPart(list, placement.split_factor, piece), n, c);
        kept.insert(kept.end(), part.begin(), part.end());
      }
      list = kept;
    }
  }
  for (size_t d = 0; d < layout.whole.size(); ++d) {
    IndexList inside;
    for (const int64_t index : lists[d]) {
      const int64_t in_slice = index - layout.offset[d];
      if (in_slice >= 0 && in_slice < shape[d]) inside.push_back(in_slice);
    }
    lists[d] = inside;
  }
  return lists;
}

std::vector<IndexList> ListsOf(const Box& box) {
  std::vector<IndexList> lists;
  for (size_t d = 0; d < box.shape.size(); ++d) {
    lists.emplace_back(static_cast<size_t>(box.shape[d]));
    std::iota(lists.back().begin(), lists.back().end(), box.offset[d]);
  }
  return lists;
}

IndexList FlatIndices(const std::vector<IndexList>& lists, absl::Span<const int64_t> shape) {
  IndexList flat = {0};
  for (size_t d = 0; d < lists.size(); ++d) {
    IndexList longer;
    longer.reserve(flat.size() * lists[d].size());
    for (const int64_t prefix : flat) {
      for (const int64_t index : lists[d]) longer.push_back(prefix * shape[d] + index);
    }
    flat = std::move(longer);
  }
  return flat;
}

int64_t CommonElements(const std::vector<IndexList>& a, const std::vector<IndexList>& b) {
  int64_t product = 1;
  for (size_t d = 0; d < a.size(); ++d) {
    IndexList common;
    std::set_intersection(a[d].begin(), a[d].end(), b[d].begin(), b[d].end(),
                          std::back_inserter(common));
    product *= static_cast<int64_t>(common.size());
  }
  return product;
}

}  // namespace sluice::oracle
