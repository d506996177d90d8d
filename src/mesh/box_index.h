// Finds boxes by where they lie.
#ifndef SLUICE_SRC_MESH_BOX_INDEX_H_
#define SLUICE_SRC_MESH_BOX_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "sluice/layout.h"

namespace sluice {

// The dimension along which most boxes begin at places of their own: as a rule, fewest meet there.
size_t DimOfMostOffsets(absl::Span<const Box* const> boxes);

// An index of boxes that stay where they are. Looks along one dimension alone, and not at all at a
// few boxes.
class BoxIndex {
 public:
  explicit BoxIndex(absl::Span<const Box* const> boxes);

  // Numbers in the list, ascending: all boxes that meet `region`, and others.
  absl::InlinedVector<size_t, 8> Find(const Box& region) const;

 private:
  // Boxes of like lengths, so that a long box does not make many short ones be looked at.
  struct Lengths {
    int64_t longest = 0;
    std::vector<std::pair<int64_t, size_t>> begins;  // ascending
  };

  std::vector<const Box*> boxes_;
  size_t dim_ = 0;
  std::map<int, Lengths> lengths_;  // by the bits of a length
};

}  // namespace sluice

#endif  // SLUICE_SRC_MESH_BOX_INDEX_H_
