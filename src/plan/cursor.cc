// Cursors as texts, merged, and kept up to date.
#include "plan/cursor.h"

#include <algorithm>
#include <array>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sluice {
namespace {

constexpr absl::string_view kMagic = "sluice-cursor-1";
// Positions that a merge looks at one by one; what lies further ahead of the slowest rank comes
// again.
constexpr int64_t kMergeScanMax = int64_t{1} << 20;

absl::Status NoCursor(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("not a stream's cursor (", why, "): '", text.substr(0, 100), "'"));
}

// Fields between blanks, all numbers.
class Fields {
 public:
  explicit Fields(absl::string_view text) : fields_(absl::StrSplit(text, ' ', absl::SkipEmpty())) {}

  bool Take(absl::string_view word) {
    if (next_ >= fields_.size() || fields_[next_] != word) return false;
    ++next_;
    return true;
  }
  template <typename Number>
  bool TakeNumber(Number* number) {
    return next_ < fields_.size() && absl::SimpleAtoi(fields_[next_++], number);
  }
  bool empty() const { return next_ >= fields_.size(); }

 private:
  std::vector<absl::string_view> fields_;
  size_t next_ = 0;
};

bool IsSound(const Cursor& cursor) {
  const PlaceSet& places = cursor.places;
  if (cursor.items < 1 || cursor.items > StreamPlan::kItemsMax) return false;
  if (places.first < 0 || places.step < 1 || places.end < 0 || places.end > cursor.items) {
    return false;
  }
  int64_t last = cursor.point.position;
  if (last < 0) return false;
  for (const PositionRange& range : cursor.point.done) {
    if (range.begin < last || range.end <= range.begin) return false;
    last = range.end;
  }
  return true;
}

}  // namespace

std::string Cursor::ToText() const {
  std::string text = absl::StrCat(kMagic, " items ", items, " shuffle ", shuffle ? 1 : 0, " seed ",
                                  seed, " places ", places.first, " ", places.step, " ", places.end,
                                  " position ", point.position, " done");
  const size_t ranges = std::min(point.done.size(), kRangesMax);
  for (size_t i = 0; i < ranges; ++i) {
    absl::StrAppend(&text, " ", point.done[i].begin, " ", point.done[i].end);
  }
  return text;
}

absl::StatusOr<Cursor> Cursor::Parse(absl::string_view text) {
  if (text.size() > kBytesMax) return NoCursor(text, "too long");
  Fields fields(text);
  if (!fields.Take(kMagic)) return NoCursor(text, "of another kind, or version");
  Cursor cursor;
  int shuffle = 0;
  const bool whole =
      fields.Take("items") && fields.TakeNumber(&cursor.items) && fields.Take("shuffle") &&
      fields.TakeNumber(&shuffle) && fields.Take("seed") && fields.TakeNumber(&cursor.seed) &&
      fields.Take("places") && fields.TakeNumber(&cursor.places.first) &&
      fields.TakeNumber(&cursor.places.step) && fields.TakeNumber(&cursor.places.end) &&
      fields.Take("position") && fields.TakeNumber(&cursor.point.position) && fields.Take("done");
  if (!whole) return NoCursor(text, "cut short");
  cursor.shuffle = shuffle != 0;
  while (!fields.empty()) {
    PositionRange range;
    if (cursor.point.done.size() == kRangesMax || !fields.TakeNumber(&range.begin) ||
        !fields.TakeNumber(&range.end)) {
      return NoCursor(text, "with wrong ranges");
    }
    cursor.point.done.push_back(range);
  }
  if (!IsSound(cursor)) return NoCursor(text, "with numbers out of range");
  return cursor;
}

absl::StatusOr<Cursor> MergeCursors(absl::Span<const Cursor> cursors) {
  if (cursors.empty()) return absl::InvalidArgumentError("no cursors to merge");
  Cursor merged = cursors[0];
  merged.places = {0, 1, merged.items};
  merged.point.done.clear();
  int64_t last = 0;
  for (const Cursor& cursor : cursors) {
    if (cursor.items != merged.items || cursor.shuffle != merged.shuffle ||
        cursor.seed != merged.seed) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cursors of different streams: '", cursors[0].ToText(), "' and '", cursor.ToText(), "'"));
    }
    const ResumePoint& point = cursor.point;
    merged.point.position = std::min(merged.point.position, point.position);
    last = std::max({last, point.position, point.done.empty() ? 0 : point.done.back().end});
  }
  const auto released = [cursors](int64_t position) {
    return std::all_of(cursors.begin(), cursors.end(),
                       [position](const Cursor& cursor) { return cursor.Released(position); });
  };
  last = std::min(last, merged.point.position + kMergeScanMax);
  while (merged.point.position < last && released(merged.point.position)) ++merged.point.position;
  std::vector<PositionRange>& done = merged.point.done;
  for (int64_t position = merged.point.position; position < last; ++position) {
    if (!released(position)) continue;
    if (!done.empty() && done.back().end == position) {
      ++done.back().end;
    } else {
      if (done.size() == Cursor::kRangesMax) break;
      done.push_back({position, position + 1});
    }
  }
  return merged;
}

// Ranges reach over positions of other ranks: two are one if no position of this rank lies between.
void ReleaseLog::Release(int64_t position) {
  ResumePoint& point = cursor_.point;
  std::vector<PositionRange>& done = point.done;
  auto at = std::lower_bound(
      done.begin(), done.end(), position,
      [](const PositionRange& range, int64_t value) { return range.begin < value; });
  at = done.insert(at, {position, position + 1});
  const auto after = std::next(at);
  if (after != done.end() && plan_->NextPosition(at->end) >= after->begin) {
    at->end = after->end;
    at = std::prev(done.erase(after));
  }
  if (at != done.begin()) {
    const auto before = std::prev(at);
    if (plan_->NextPosition(before->end) >= at->begin) {
      before->end = at->end;
      done.erase(at);
    }
  }
  if (plan_->NextPosition(point.position) >= done.front().begin) {
    point.position = done.front().end;
    done.erase(done.begin());
  }
}

}  // namespace sluice
