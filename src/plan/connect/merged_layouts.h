// Layouts of whole tensors, made of what several ranks or meshes have of them.
#ifndef SLUICE_SRC_PLAN_CONNECT_MERGED_LAYOUTS_H_
#define SLUICE_SRC_PLAN_CONNECT_MERGED_LAYOUTS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sluice/layout.h"

namespace sluice {

// The most boxes of all merged lists together, each list counted once. All ranks hold them.
inline constexpr int64_t kMergedBoxesMax = int64_t{1} << 21;

// A layout is made once of the same parts, so that many tensors share the layout.
class MergedLayouts {
 public:
  explicit MergedLayouts(int64_t boxes_max = kMergedBoxesMax) : boxes_max_(boxes_max) {}

  // Ranks and the boxes that each of them holds.
  struct Holders {
    absl::Span<const int> ranks;
    const BoxList* boxes = nullptr;  // of one rank: each of `ranks` holds them
    int number = 0;                  // equal for equal `boxes`
    int half = 0;                    // equal for equal `ranks`
  };
  // ResourceExhausted: the list, or all lists, have too many boxes.
  absl::StatusOr<Layout> OfBoxes(absl::Span<const Holders> holders);

  // True if the layouts are alike but for their ranks, and have none in common.
  static bool AreCopies(const Layout& a, const Layout& b);
  // Merges layouts of several meshes with a copy of the tensor each. The merged mesh has one more
  // dimension, the first, which replicates. `numbers`: of the layouts, equal for equal ones.
  Layout OfCopies(absl::Span<const Layout* const> layouts, const std::vector<int>& numbers);

 private:
  absl::flat_hash_map<std::vector<std::pair<int, int>>, Layout> boxes_;
  absl::flat_hash_map<std::vector<int>, Layout> copies_;
  const int64_t boxes_max_;
  int64_t boxes_made_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CONNECT_MERGED_LAYOUTS_H_
