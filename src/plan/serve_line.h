// Needs laid one after another on a line of elements, which is cut between senders.
#ifndef SLUICE_SRC_PLAN_SERVE_LINE_H_
#define SLUICE_SRC_PLAN_SERVE_LINE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "plan/serve.h"

namespace sluice {

// Below this many bytes a message more is cheaper than a bucket with several members, which joins
// fewer small chunks.
inline constexpr int64_t kSharedNeedBytesMin = 64 << 10;

// How many ranks of a node the bytes of a need come to first: all of its largest node, if there is
// enough for each.
int32_t StripesOf(size_t largest, int64_t bytes);

// Needs with their regions. The region of a need whose ranks are served alone is on the line once
// for each of them.
struct Line {
  absl::Span<const Want> wants;
  absl::Span<const Need> needs;

  const Want& RegionOf(int32_t need) const {
    return wants[static_cast<size_t>(needs[static_cast<size_t>(need)].want)];
  }
};

// Lays `members` (indices of needs) on the line and cuts it at the running sums of `stretches`. A
// boundary inside a need moves to where a cut is worth making.
void CutLine(const Line& line, absl::Span<const int32_t> members,
             absl::Span<const int64_t> stretches, int64_t element_bytes, ServeGroup* group);

// Cuts the shares of needs with several stripes between the stripes, in equal parts of the region.
void CutStripes(const Line& line, int64_t element_bytes, ServeGroup* group);

// The length of the line.
int64_t TotalElements(const Line& line, absl::Span<const int32_t> members);

// `count` stretches that add up to `total` and differ by at most one.
std::vector<int64_t> EvenStretches(int64_t total, size_t count);

// Stretches that add up to `total` and, on top of `loads`, fill all to the lowest common level.
std::vector<int64_t> LevelStretches(int64_t total, absl::Span<const int64_t> loads);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_SERVE_LINE_H_
