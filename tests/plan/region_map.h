// The runs of a planned region, written out index by index.
#ifndef SLUICE_TESTS_PLAN_REGION_MAP_H_
#define SLUICE_TESTS_PLAN_REGION_MAP_H_

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace sluice::oracle {

// For index q of the region along dimension d: its positions on the two sides.
struct RegionMap {
  std::vector<int64_t> extent;
  std::vector<std::vector<int64_t>> src;
  std::vector<std::vector<int64_t>> dst;

  int64_t elements() const {
    int64_t product = 1;
    for (const int64_t size : extent) product *= size;
    return product;
  }
};

inline RegionMap MapRegion(const Plan& plan, int32_t index) {
  const RegionRuns& region = plan.regions.at(static_cast<size_t>(index));
  RegionMap map;
  for (size_t d = 0; d < static_cast<size_t>(region.dims); ++d) {
    map.extent.push_back(region.extent[d]);
    map.src.emplace_back();
    map.dst.emplace_back();
    for (int32_t r = region.first_run[d]; r < region.first_run[d + 1]; ++r) {
      const Stretch& run = plan.runs.at(static_cast<size_t>(r));
      for (int64_t i = 0; i < run.length; ++i) {
        map.src.back().push_back(run.src + i);
        map.dst.back().push_back(run.dst + i);
      }
    }
  }
  return map;
}

// Offset of element `element` of the region (row-major) among positions `side` of a dense tensor of
// `shape`; -1 if a position lies outside.
inline int64_t OffsetOf(int64_t element, const std::vector<int64_t>& extent,
                        const std::vector<std::vector<int64_t>>& side,
                        const std::vector<int64_t>& shape) {
  int64_t offset = 0;
  int64_t stride = 1;
  for (size_t d = extent.size(); d-- > 0;) {
    const int64_t position = side[d][static_cast<size_t>(element % extent[d])];
    if (position < 0 || position >= shape[d]) return -1;
    element /= extent[d];
    offset += position * stride;
    stride *= shape[d];
  }
  return offset;
}

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_REGION_MAP_H_
