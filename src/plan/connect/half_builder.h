// Makes a half out of tensors that each bring a shape and layout of their own.
#ifndef SLUICE_SRC_PLAN_CONNECT_HALF_BUILDER_H_
#define SLUICE_SRC_PLAN_CONNECT_HALF_BUILDER_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "plan/connect/half.h"

namespace sluice {

// Equal layouts and equal kinds become one, whoever made them. Then equal tensors make equal
// halves.
class HalfBuilder {
 public:
  // The kind of a tensor. A layout without a placement for each mesh dimension is taken, too, so
  // that CheckHalf can say what is wrong with it. `layout` must stay until the half is complete.
  int KindOf(absl::Span<const int64_t> shape, DType dtype, const Layout& layout);

  // The half, of which kinds and layouts are complete.
  Half* half() { return &half_; }

 private:
  int LayoutOf(const Layout& layout);

  Half half_;
  // By the identities of mesh and boxes and by the placements, and by all that it says.
  absl::flat_hash_map<std::string, int> known_layouts_;
  absl::flat_hash_map<std::string, int> layouts_;
  absl::flat_hash_map<std::string, int> kinds_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CONNECT_HALF_BUILDER_H_
