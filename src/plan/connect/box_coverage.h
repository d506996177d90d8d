// Checks whether boxes of sources hold all that a target needs.
#ifndef SLUICE_SRC_PLAN_CONNECT_BOX_COVERAGE_H_
#define SLUICE_SRC_PLAN_CONNECT_BOX_COVERAGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "sluice/layout.h"

namespace sluice {

// An element that no source box holds.
struct CoverageHole {
  std::vector<int64_t> element;
  std::vector<int> ranks = {};  // that need it, ascending; empty: those of the whole target
};

// The first one of a target of `shape`, if there is one. Both sides are valid, and `sources` is not
// empty. ResourceExhausted: boxes cut the tensor into too many parts.
absl::StatusOr<absl::optional<CoverageHole>> FindHole(const BoxList& sources, const Layout& target,
                                                      absl::Span<const int64_t> shape);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CONNECT_BOX_COVERAGE_H_
