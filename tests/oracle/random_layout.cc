// Seeded random layouts, shapes and transfers for tests.
#include "oracle/random_layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensor/check.h"

namespace sluice::oracle {

int64_t Dice::Between(int64_t low, int64_t high) {
  // The remainder is biased by far less than any test could see, and is the same everywhere.
  return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
}

void Dice::Shuffle(std::vector<int>* values) {
  for (size_t i = values->size(); i > 1; --i) {
    std::swap((*values)[i - 1],
              (*values)[static_cast<size_t>(Between(0, static_cast<int64_t>(i) - 1))]);
  }
}

std::vector<int64_t> RandomShape(Dice* dice, int dims_max, int64_t elements_max) {
  const int64_t dims = dice->Between(1, dims_max);
  std::vector<int64_t> shape;
  int64_t elements = 1;
  for (int64_t d = 0; d < dims; ++d) {
    int64_t size = dice->Pick<int64_t>({1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 24, 37});
    if (dims == 1) size *= dice->Pick<int64_t>({1, 1, 3, 10});
    if (dice->Chance(2)) size = 0;
    size = std::min(size, std::max<int64_t>(1, elements_max / elements));
    elements *= std::max<int64_t>(size, 1);
    shape.push_back(size);
  }
  for (size_t d = shape.size(); d > 1; --d) {
    std::swap(shape[d - 1],
              shape[static_cast<size_t>(dice->Between(0, static_cast<int64_t>(d) - 1))]);
  }
  return shape;
}

Mesh RandomMesh(Dice* dice, std::vector<int> ranks) {
  const auto room = static_cast<int64_t>(ranks.size());
  std::vector<int64_t> sizes;
  int64_t product = 1;
  const int64_t dims = dice->Between(1, 4);
  for (int64_t d = 0; d < dims; ++d) {
    int64_t size = dice->Pick<int64_t>({1, 1, 2, 2, 2, 3, 3, 4, 5, 7, 11});
    while (product * size > room) --size;
    sizes.push_back(size);
    product *= size;
  }
  dice->Shuffle(&ranks);
  ranks.resize(static_cast<size_t>(product));
  if (dice->Chance(50)) std::sort(ranks.begin(), ranks.end());
  auto mesh = Mesh::Create(std::move(sizes), std::move(ranks));
  SLUICE_CHECK(mesh.ok(), "a generated mesh must be valid");
  return *std::move(mesh);
}

std::vector<Placement> RandomPlacements(Dice* dice, const Mesh& mesh, int tensor_dims) {
  // Half of the time all cuts fall on one dimension, so that repeated cuts are common.
  const bool one_dim = dice->Chance(50);
  const auto favourite = static_cast<int>(dice->Between(0, tensor_dims - 1));
  std::vector<Placement> placements;
  for (size_t m = 0; m < mesh.sizes().size(); ++m) {
    const int dim = one_dim ? favourite : static_cast<int>(dice->Between(0, tensor_dims - 1));
    const int64_t kind = dice->Between(1, 100);
    if (kind <= 25) {
      placements.push_back(Placement::Replicate());
    } else if (kind <= 65) {
      placements.push_back(Placement::Shard(dim));
    } else {
      placements.push_back(
          Placement::StridedShard(dim, dice->Pick<int64_t>({1, 2, 2, 2, 3, 4, 5, 8, 13})));
    }
  }
  return placements;
}

std::vector<int> RandomOrder(Dice* dice, const Mesh& mesh) {
  if (dice->Chance(50)) return {};
  std::vector<int> order(mesh.sizes().size());
  std::iota(order.begin(), order.end(), 0);
  dice->Shuffle(&order);
  return order;
}

std::string Describe(const Layout& layout, absl::Span<const int64_t> shape) {
  return absl::StrCat(
      "shape (", absl::StrJoin(shape, ","), ") mesh (", absl::StrJoin(layout.mesh.sizes(), ","),
      ") ranks [", absl::StrJoin(layout.mesh.ranks(), ","), "] placements ",
      absl::StrJoin(
          layout.placements, ",",
          [](std::string* out, const Placement& p) { absl::StrAppend(out, PlacementName(p)); }),
      " order [", absl::StrJoin(layout.order, ","), "]");
}

}  // namespace sluice::oracle
