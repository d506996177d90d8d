// Sorted by where boxes begin.
#include "mesh/box_index.h"

#include <algorithm>
#include <bit>

namespace sluice {
namespace {

// A thousand tensors with some boxes each need no order of them.
constexpr size_t kFew = 8;

}  // namespace

size_t DimOfMostOffsets(absl::Span<const Box* const> boxes) {
  size_t best = 0;
  size_t most = 0;
  for (size_t d = 0; d < boxes[0]->shape.size(); ++d) {
    std::vector<int64_t> offsets;
    offsets.reserve(boxes.size());
    for (const Box* box : boxes) offsets.push_back(box->offset[d]);
    std::sort(offsets.begin(), offsets.end());
    const auto distinct =
        static_cast<size_t>(std::unique(offsets.begin(), offsets.end()) - offsets.begin());
    if (distinct > most) {
      most = distinct;
      best = d;
    }
  }
  return best;
}

BoxIndex::BoxIndex(absl::Span<const Box* const> boxes) : boxes_(boxes.begin(), boxes.end()) {
  if (boxes.size() <= kFew) return;
  dim_ = DimOfMostOffsets(boxes);
  for (size_t i = 0; i < boxes_.size(); ++i) {
    const int64_t length = boxes_[i]->shape[dim_];
    Lengths& alike = lengths_[static_cast<int>(std::bit_width(static_cast<uint64_t>(length)))];
    alike.longest = std::max(alike.longest, length);
    alike.begins.emplace_back(boxes_[i]->offset[dim_], i);
  }
  for (auto& [bits, alike] : lengths_) std::sort(alike.begins.begin(), alike.begins.end());
}

absl::InlinedVector<size_t, 8> BoxIndex::Find(const Box& region) const {
  absl::InlinedVector<size_t, 8> found;
  if (lengths_.empty()) {
    for (size_t i = 0; i < boxes_.size(); ++i) found.push_back(i);
    return found;
  }
  const int64_t begin = region.offset[dim_];
  const int64_t end = begin + region.shape[dim_];
  for (const auto& [bits, alike] : lengths_) {
    const auto first = std::upper_bound(
        alike.begins.begin(), alike.begins.end(), begin - alike.longest,
        [](int64_t value, const std::pair<int64_t, size_t>& each) { return value < each.first; });
    for (auto each = first; each != alike.begins.end() && each->first < end; ++each) {
      if (each->first + boxes_[each->second]->shape[dim_] > begin) found.push_back(each->second);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace sluice
