// Placements as docs/layouts.md defines them, on plain lists of indices.
#include "chaos/plain_layout.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace sluice::chaos {
namespace {

using Indices = std::vector<int64_t>;

// Piece `number` of `count` equal ones, of which the last may be shorter, or empty.
Indices Chunk(const Indices& all, int64_t count, int64_t number) {
  const int64_t length = static_cast<int64_t>(all.size());
  const int64_t step = (length + count - 1) / count;
  const int64_t begin = std::min(number * step, length);
  const int64_t end = std::min(begin + step, length);
  return Indices(all.begin() + begin, all.begin() + end);
}

Indices StridedChunk(const Indices& all, int64_t pieces, int64_t count, int64_t number) {
  Indices kept;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const Indices part = Chunk(Chunk(all, pieces, piece), count, number);
    kept.insert(kept.end(), part.begin(), part.end());
  }
  return kept;
}

}  // namespace

std::vector<int64_t> Part::shape() const {
  std::vector<int64_t> shape;
  for (const Indices& along : indices) shape.push_back(static_cast<int64_t>(along.size()));
  return shape;
}

int64_t Part::elements() const {
  if (indices.empty()) return 0;
  int64_t elements = 1;
  for (const Indices& along : indices) elements *= static_cast<int64_t>(along.size());
  return elements;
}

Part PartOf(const PlainLayout& layout, const std::vector<int64_t>& shape, int rank) {
  Part part;
  const auto found = std::find(layout.ranks.begin(), layout.ranks.end(), rank);
  if (found == layout.ranks.end()) return part;
  for (const int64_t size : shape) {
    part.indices.emplace_back(static_cast<size_t>(size));
    std::iota(part.indices.back().begin(), part.indices.back().end(), 0);
  }
  int64_t rest = found - layout.ranks.begin();
  int64_t stride = static_cast<int64_t>(layout.ranks.size());
  for (size_t m = 0; m < layout.sizes.size(); ++m) {
    const int64_t count = layout.sizes[m];
    stride /= count;
    const int64_t coordinate = rest / stride;
    rest %= stride;
    const std::string& placement = layout.placements[m];
    if (placement[0] == 'P') part.contribution = part.contribution * count + coordinate;
    if (placement[0] != 'S') continue;
    const size_t open = placement.find('(');
    const size_t dim = static_cast<size_t>(std::atoi(placement.c_str() + open + 1));
    const size_t comma = placement.find(',');
    Indices& along = part.indices[dim];
    along = comma == placement.npos
                ? Chunk(along, count, coordinate)
                : StridedChunk(along, std::atoi(placement.c_str() + comma + 1), count, coordinate);
  }
  return part;
}

Contributions ContributionsOf(const PlainLayout& layout) {
  Contributions contributions;
  for (size_t m = 0; m < layout.sizes.size(); ++m) {
    const std::string& placement = layout.placements[m];
    if (placement[0] != 'P') continue;
    contributions.count *= layout.sizes[m];
    contributions.op = placement.substr(2, 3);
  }
  return contributions;
}

}  // namespace sluice::chaos
