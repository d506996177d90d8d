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

Layout RandomLayout(Dice* dice, std::vector<int> ranks, int tensor_dims) {
  Layout layout;
  layout.mesh = RandomMesh(dice, std::move(ranks));
  layout.placements = RandomPlacements(dice, layout.mesh, tensor_dims);
  layout.order = RandomOrder(dice, layout.mesh);
  return layout;
}

const std::vector<DType>& AllDTypes() {
  static const auto* const kAll = new std::vector<DType>{
      DType::kF64,    DType::kF32,      DType::kF16,  DType::kBF16,       DType::kF8E4M3,
      DType::kF8E5M2, DType::kI64,      DType::kI32,  DType::kI8,         DType::kU8,
      DType::kI16,    DType::kU16,      DType::kU32,  DType::kU64,        DType::kBool,
      DType::kF8E8M0, DType::kF4E2M1x2, DType::kI4x2, DType::kF8E4M3Fnuz, DType::kF8E5M2Fnuz,
      DType::kC64,    DType::kC128};
  return *kAll;
}

void RandomSlice(Dice* dice, absl::Span<const int64_t> shape, Layout* layout) {
  if (dice->Chance(70)) return;
  for (const int64_t size : shape) {
    const int64_t before = dice->Pick<int64_t>({0, 0, 1, 2, 5});
    layout->offset.push_back(before);
    layout->whole.push_back(before + size + dice->Pick<int64_t>({0, 0, 1, 3}));
  }
}

namespace {

// Cuts `box` into `parts` boxes or fewer.
std::vector<Box> RandomParts(Dice* dice, const Box& box, int64_t parts) {
  if (parts <= 1) return {box};
  const auto d = static_cast<size_t>(dice->Between(0, static_cast<int64_t>(box.shape.size()) - 1));
  if (box.shape[d] < 2) return {box};
  const int64_t at = dice->Between(1, box.shape[d] - 1);
  Box first = box;
  Box second = box;
  first.shape[d] = at;
  second.offset[d] += at;
  second.shape[d] -= at;
  std::vector<Box> found = RandomParts(dice, first, parts / 2);
  const std::vector<Box> others = RandomParts(dice, second, parts - parts / 2);
  found.insert(found.end(), others.begin(), others.end());
  return found;
}

}  // namespace

BoxList RandomBoxes(Dice* dice, absl::Span<const int64_t> shape, std::vector<int> ranks,
                    bool covers) {
  const Box whole = {std::vector<int64_t>(shape.size(), 0), {shape.begin(), shape.end()}};
  std::vector<RankBoxes> lists;
  dice->Shuffle(&ranks);
  for (size_t first = 0; first < ranks.size();) {
    // A family of ranks cuts the tensor in a way of its own, and divides the boxes.
    const auto left = static_cast<int64_t>(ranks.size() - first);
    const int64_t family = dice->Between(1, left);
    std::vector<Box> parts = RandomParts(dice, whole, dice->Between(1, 3 * family));
    std::vector<std::vector<Box>> of(static_cast<size_t>(family));
    for (const Box& part : parts) {
      const bool kept = (covers && first == 0) || dice->Chance(70);
      if (kept) of[static_cast<size_t>(dice->Between(0, family - 1))].push_back(part);
    }
    for (size_t i = 0; i < of.size(); ++i) {
      if (i > 0 && of[i].empty() && dice->Chance(50)) of[i] = of[i - 1];  // a replica
      if (!of[i].empty()) lists.push_back({ranks[first + i], of[i]});
    }
    if (lists.empty()) lists.push_back({ranks[first], {whole}});
    first += static_cast<size_t>(family);
    if (dice->Chance(50)) break;
  }
  absl::StatusOr<BoxList> list = BoxList::Create(std::move(lists));
  SLUICE_CHECK(list.ok(), "generated boxes must be valid");
  return *std::move(list);
}

std::string Describe(const Layout& layout, absl::Span<const int64_t> shape) {
  return absl::StrCat(
      "shape (", absl::StrJoin(shape, ","), ") mesh (", absl::StrJoin(layout.mesh.sizes(), ","),
      ") ranks [", absl::StrJoin(layout.mesh.ranks(), ","), "] placements ",
      absl::StrJoin(
          layout.placements, ",",
          [](std::string* out, const Placement& p) { absl::StrAppend(out, PlacementName(p)); }),
      " order [", absl::StrJoin(layout.order, ","), "] slice at [",
      absl::StrJoin(layout.offset, ","), "] of [", absl::StrJoin(layout.whole, ","), "]");
}

}  // namespace sluice::oracle
