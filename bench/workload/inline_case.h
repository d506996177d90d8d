// A case given by flags, at one size or swept over many.
#ifndef SLUICE_BENCH_WORKLOAD_INLINE_CASE_H_
#define SLUICE_BENCH_WORKLOAD_INLINE_CASE_H_

#include <string>

#include "absl/status/statusor.h"
#include "workload/workload.h"

namespace sluice::bench {

// A side in three flags.
struct SideParts {
  std::string mesh;
  std::string ranks;
  std::string placements;

  bool any() const { return !mesh.empty() || !ranks.empty() || !placements.empty(); }
};

// The flags as they were given; empty where they were not.
struct InlineFlags {
  std::string shape;
  std::string dtype;
  std::string src;  // MESH@RANKS:PLACEMENTS, in place of the next
  SideParts src_parts;
  std::string dst;  // likewise
  SideParts dst_parts;
  std::string collective;   // in place of both layouts, with the next
  int ranks = 0;            // of the collective; has to be set
  bool disjoint = false;    // ranks of a `dst` that names none begin after those of the source
  std::string begin_bytes;  // -b
  std::string end_bytes;    // -e; as -b where empty
  std::string factor;       // -f; 2 where this and the next are empty
  std::string step;         // -i, in place of -f
  int tensors = 1;          // of the same shape and layouts

  bool has_sides() const {
    return !src.empty() || src_parts.any() || !dst.empty() || dst_parts.any();
  }
};

// One case named "inline", or as the collective. With -b one case per size: b, b*f, b*f*f, .. up to
// e, or b, b+i, b+2*i, .., named "inline/BYTES". Its first dimension is as long as fits into this
// many bytes of the whole tensor, and at least 1: then BYTES are those of the tensor. A size that
// comes to the same tensor as the one before is left out. InvalidArgument names the flag.
absl::StatusOr<Workload> MakeInlineCases(const InlineFlags& flags);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_INLINE_CASE_H_
