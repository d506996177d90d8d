// Cutting the line: at rows, or at a need's edge where the pieces would be too small for a message.
#include "plan/serve_line.h"

#include <algorithm>
#include <compare>
#include <utility>

#include "tensor/round.h"

namespace sluice {
namespace {

// A need is cut between senders only into pieces of at least this many bytes.
constexpr int64_t kSmallestShareBytes = 64 << 10;
constexpr int64_t kShareAlignmentBytes = 16;

// Least bytes of a stripe: a bucket with several members takes a slot at all of them.
constexpr int64_t kStripeBytesMin = 256 << 10;

int64_t SmallestShare(int64_t element_bytes) { return CeilDiv(kSmallestShareBytes, element_bytes); }

// Rounds `offset` within `need` to where a cut is worth making: to rows, if they are short beside
// the `stretch` of a sender.
int64_t SnapCut(const Want& need, int64_t offset, int64_t stretch, int64_t element_bytes) {
  const int64_t smallest = SmallestShare(element_bytes);
  if (need.elements < 2 * smallest) return 2 * offset < need.elements ? 0 : need.elements;
  const int64_t alignment =
      need.row_elements <= stretch / 32 ? need.row_elements : kShareAlignmentBytes / element_bytes;
  const int64_t snapped = (offset + alignment / 2) / alignment * alignment;
  if (snapped < smallest) return 0;
  if (need.elements - snapped < smallest) return need.elements;
  return snapped;
}

// How often a need's region is on the line.
int64_t CopiesOf(const Need& need) {
  return need.apart ? static_cast<int64_t>(need.ranks.size()) : 1;
}

// A place on the line: within copy number `copy` of a need's region.
struct LinePosition {
  int64_t copy = 0;
  int64_t offset = 0;

  friend auto operator<=>(const LinePosition&, const LinePosition&) = default;
};

// Appends what lies between two places of a need: the whole copies in one share.
void AppendShares(int32_t number, const Need& need, int64_t elements, LinePosition from,
                  const LinePosition& to, std::vector<Share>* shares) {
  const auto append = [&](int64_t first, int64_t last, int64_t begin, int64_t end) {
    const int64_t ranks = need.apart ? last : static_cast<int64_t>(need.ranks.size());
    shares->push_back(
        {number, static_cast<int32_t>(first), static_cast<int32_t>(ranks), begin, end, -1});
  };
  if (from.offset > 0 && from.copy < to.copy) {
    append(from.copy, from.copy + 1, from.offset, elements);
    from = {from.copy + 1, 0};
  }
  if (from.copy < to.copy) append(from.copy, to.copy, 0, elements);
  if (from.copy < to.copy) from = {to.copy, 0};
  if (from.offset < to.offset) append(to.copy, to.copy + 1, from.offset, to.offset);
}

}  // namespace

void CutLine(const Line& line, absl::Span<const int32_t> members,
             absl::Span<const int64_t> stretches, int64_t element_bytes, ServeGroup* group) {
  group->first_share.assign(1, 0);
  size_t m = 0;
  LinePosition done;       // of members[m]: what is before it is given out
  int64_t line_begin = 0;  // where members[m] begins on the line
  int64_t boundary = 0;
  for (size_t q = 0; q < stretches.size(); ++q) {
    boundary += stretches[q];
    const bool last = q + 1 == stretches.size();
    while (m < members.size()) {
      const Need& need = line.needs[static_cast<size_t>(members[m])];
      const Want& region = line.RegionOf(members[m]);
      const int64_t copies = CopiesOf(need);
      LinePosition cut = {copies, 0};
      if (!last && boundary < line_begin + copies * region.elements) {
        const int64_t offset = std::max<int64_t>(0, boundary - line_begin);
        cut = {offset / region.elements,
               SnapCut(region, offset % region.elements, stretches[q], element_bytes)};
        if (cut.offset == region.elements) cut = {cut.copy + 1, 0};
      }
      cut = std::max(cut, done);
      AppendShares(members[m], need, region.elements, done, cut, &group->shares);
      done = cut;
      if (cut.copy < copies) break;
      line_begin += copies * region.elements;
      done = {};
      ++m;
    }
    group->first_share.push_back(static_cast<int32_t>(group->shares.size()));
  }
}

void CutStripes(const Line& line, int64_t element_bytes, ServeGroup* group) {
  const int64_t smallest = SmallestShare(element_bytes);
  std::vector<Share> shares;
  shares.reserve(group->shares.size());
  size_t next = 0;
  for (size_t q = 0; q + 1 < group->first_share.size(); ++q) {
    const size_t end = static_cast<size_t>(group->first_share[q + 1]);
    for (group->first_share[q] = static_cast<int32_t>(shares.size()); next < end; ++next) {
      Share share = group->shares[next];
      const int64_t stripes = line.needs[static_cast<size_t>(share.need)].stripes;
      const Want& region = line.RegionOf(share.need);
      const int64_t stretch = region.elements / stripes;
      const int64_t last = share.end;
      if (stripes > 1) share.stripe = static_cast<int32_t>(share.begin * stripes / region.elements);
      for (int64_t stripe = 0; stripes > 1 && stripe < stripes; ++stripe) {
        const int64_t to =
            stripe + 1 == stripes
                ? last
                : SnapCut(region, region.elements * (stripe + 1) / stripes, stretch, element_bytes);
        if (to - share.begin < smallest) continue;
        share.stripe = static_cast<int32_t>(stripe);
        if (last - to < smallest) break;
        share.end = to;
        shares.push_back(share);
        share.begin = to;
      }
      share.end = last;
      shares.push_back(share);
    }
  }
  group->first_share.back() = static_cast<int32_t>(shares.size());
  group->shares = std::move(shares);
}

int32_t StripesOf(size_t largest, int64_t bytes) {
  const bool worth = bytes >= static_cast<int64_t>(largest) * kStripeBytesMin;
  return worth ? static_cast<int32_t>(largest) : 1;
}

int64_t TotalElements(const Line& line, absl::Span<const int32_t> members) {
  int64_t total = 0;
  for (int32_t member : members) {
    total += CopiesOf(line.needs[static_cast<size_t>(member)]) * line.RegionOf(member).elements;
  }
  return total;
}

std::vector<int64_t> EvenStretches(int64_t total, size_t count) {
  const int64_t parts = static_cast<int64_t>(count);
  std::vector<int64_t> stretches(count, total / parts);
  for (int64_t i = 0; i < total % parts; ++i) ++stretches[static_cast<size_t>(i)];
  return stretches;
}

std::vector<int64_t> LevelStretches(int64_t total, absl::Span<const int64_t> loads) {
  std::vector<int64_t> sorted(loads.begin(), loads.end());
  std::sort(sorted.begin(), sorted.end());
  int64_t below = 0;  // sum of the loads under the level
  size_t count = 0;
  while (count < sorted.size() && sorted[count] * static_cast<int64_t>(count) - below < total) {
    below += sorted[count++];
  }
  const int64_t water = total + below;
  const int64_t level = water / static_cast<int64_t>(std::max<size_t>(count, 1));
  int64_t rest = total;
  std::vector<int64_t> stretches(loads.size(), 0);
  for (size_t i = 0; i < loads.size(); ++i) {
    stretches[i] = std::min(rest, std::max<int64_t>(0, level - loads[i]));
    rest -= stretches[i];
  }
  if (!stretches.empty()) stretches.back() += rest;  // the remainder of the division
  return stretches;
}

}  // namespace sluice
