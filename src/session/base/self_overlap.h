// Finds out whether two positions of a strided tensor lie at one place in memory.
#ifndef SLUICE_SRC_SESSION_BASE_SELF_OVERLAP_H_
#define SLUICE_SRC_SESSION_BASE_SELF_OVERLAP_H_

#include <cstdint>

#include "absl/types/span.h"

namespace sluice {

enum class SelfOverlap : uint8_t {
  kNo,
  kYes,
  kUnknown,  // finding out takes too long
};

// `strides`: one per dimension of `shape`, in elements, >= 0; the element furthest out lies below
// 2^62. Exact for two dimensions that interleave, whatever lies inside and outside of them. For
// more dimensions it tries a bounded number of combinations, which is enough unless they are large.
// Allocates nothing.
SelfOverlap FindSelfOverlap(absl::Span<const int64_t> shape, absl::Span<const int64_t> strides);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_SELF_OVERLAP_H_
