// What a rank owns of a tensor, by the definition of placements alone: nothing of src/ is used.
#ifndef SLUICE_TESTS_CHAOS_PLAIN_LAYOUT_H_
#define SLUICE_TESTS_CHAOS_PLAIN_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::chaos {

// A mesh of `sizes` over `ranks`, and a placement per mesh dimension: "R", "S(d)", "SS(d,k)",
// "P(op)" with op sum, max or min.
struct PlainLayout {
  std::vector<int64_t> sizes;
  std::vector<int> ranks;
  std::vector<std::string> placements;
};

// One rank's part: the global indices that it owns along each tensor dimension, in local order.
struct Part {
  std::vector<std::vector<int64_t>> indices;  // none: the rank is not in the mesh
  int64_t contribution = 0;                   // which one it holds under Partial placements
  std::vector<int64_t> shape() const;
  int64_t elements() const;
};

// Of a tensor of `shape`. A rank outside the mesh owns nothing.
Part PartOf(const PlainLayout& layout, const std::vector<int64_t>& shape, int rank);

// How contributions become one element: their number, and the op ("" where there is one).
struct Contributions {
  int64_t count = 1;
  std::string op;
};
Contributions ContributionsOf(const PlainLayout& layout);

}  // namespace sluice::chaos

#endif  // SLUICE_TESTS_CHAOS_PLAIN_LAYOUT_H_
