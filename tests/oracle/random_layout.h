// Seeded random layouts, shapes and transfers for tests. Says nothing about what is right.
#ifndef SLUICE_TESTS_ORACLE_RANDOM_LAYOUT_H_
#define SLUICE_TESTS_ORACLE_RANDOM_LAYOUT_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice::oracle {

// Numbers that depend on the seed alone.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}

  // Uniform in [low, high].
  int64_t Between(int64_t low, int64_t high);
  // True `percent` times in a hundred.
  bool Chance(int percent) { return Between(1, 100) <= percent; }
  template <typename T>
  const T& Pick(const std::vector<T>& values) {
    return values[static_cast<size_t>(Between(0, static_cast<int64_t>(values.size()) - 1))];
  }
  void Shuffle(std::vector<int>* values);

 private:
  std::mt19937_64 engine_;
};

// 1 to `dims_max` dimensions, uneven, now and then of size 1 or 0, at most `elements_max` elements.
std::vector<int64_t> RandomShape(Dice* dice, int dims_max, int64_t elements_max);

// 1 to 4 dimensions over some of `ranks`, in any order.
Mesh RandomMesh(Dice* dice, std::vector<int> ranks);

// Any mix of R, S(d) and SS(d,k), with repeated cuts of one dimension.
std::vector<Placement> RandomPlacements(Dice* dice, const Mesh& mesh, int tensor_dims);

// An order in which its dimensions are visited, any permutation; or none.
std::vector<int> RandomOrder(Dice* dice, const Mesh& mesh);

// All three, one after another.
Layout RandomLayout(Dice* dice, std::vector<int> ranks, int tensor_dims);

// In the order of the enumeration.
const std::vector<DType>& AllDTypes();

// Makes `layout` that of a slice, of shape `shape`, of a larger tensor; or leaves it.
void RandomSlice(Dice* dice, absl::Span<const int64_t> shape, Layout* layout);

// Boxes of a tensor of `shape` on some of `ranks`. Those of all ranks together cover it, where
// `covers`. Now and then ranks hold the same ones, and the same elements in others.
BoxList RandomBoxes(Dice* dice, absl::Span<const int64_t> shape, std::vector<int> ranks,
                    bool covers);

// "shape (3,4) mesh (2,2) ranks [0,3,1,2] placements R,S(0) order []", for
// traces.
std::string Describe(const Layout& layout, absl::Span<const int64_t> shape);

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_ORACLE_RANDOM_LAYOUT_H_
