// Cursors as texts: "sluice-cursor-2 items 400 shuffle 0 seed 0 data 0 / 0 1 2 400 100 3 2".
//
// A text of shuffled blocks has "block 64" after the data. Older versions refuse such a text.
//
// A layer begins with '/', its further parts with '|'. A part says how many sets of places there
// are. Then come the first set's first place, step and end, and how many of its members are
// released. For each range beyond these come two numbers: the members that lie between, and those
// that the range has. Sets of places of one part begin at neighbouring places and are equal in all
// else. So ranks that deal items between them, and are as far as each other, cost one part.
#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plan/shard/cursor.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

constexpr absl::string_view kMagic = "sluice-cursor-2";
constexpr absl::string_view kMagicBefore = "sluice-cursor-1";
// So many sets of places of all layers; a text can say many in few bytes.
constexpr size_t kPartsMax = size_t{1} << 17;

absl::Status NoCursor(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a stream's cursor (", why, "): '",
                                                 absl::CHexEscape(text.substr(0, 100)),
                                                 text.size() > 100 ? "...'" : "'"));
}

// Fields between blanks.
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
  bool AtNumber() const {
    return next_ < fields_.size() && fields_[next_] != "/" && fields_[next_] != "|";
  }
  bool empty() const { return next_ >= fields_.size(); }

 private:
  std::vector<absl::string_view> fields_;
  size_t next_ = 0;
};

bool IsSound(const PlaceSet& places, int64_t items) {
  return places.first >= 0 && places.step >= 1 && places.end >= 0 && places.end <= items;
}

// Nothing in it passes the last position.
bool IsSound(const ReleasedPart& part, int64_t items) {
  if (!IsSound(part.places, items) || part.places.count() == 0 || part.count < 0) return false;
  int64_t last = part.count;
  for (const MemberRange& range : part.done) {
    if (range.begin < last || range.end <= range.begin) return false;
    last = range.end;
  }
  return last <= part.places.IndexAt(kPositionsMax, items);
}

bool TakeRanges(Fields* fields, ReleasedPart* part) {
  while (fields->AtNumber()) {
    MemberRange range;
    int64_t count = 0;
    if (!fields->TakeNumber(&range.begin) || !fields->TakeNumber(&count)) return false;
    if (range.begin < 1 || count < 1) return false;
    if (__builtin_add_overflow(part->end_index(), range.begin, &range.begin)) return false;
    if (__builtin_add_overflow(range.begin, count, &range.end)) return false;
    part->done.push_back(range);
  }
  return true;
}

absl::Status TakeLayers(absl::string_view text, Fields* fields, Cursor* cursor) {
  size_t parts = 0;
  while (!fields->empty()) {
    const bool begins = fields->Take("/");
    if (begins) cursor->layers.emplace_back();
    if (begins && !fields->AtNumber()) continue;  // of no parts
    if (cursor->layers.empty() || (!begins && !fields->Take("|"))) {
      return NoCursor(text, "with words that mean nothing");
    }
    int64_t sets = 0;
    ReleasedPart part;
    if (!fields->TakeNumber(&sets) || !fields->TakeNumber(&part.places.first) ||
        !fields->TakeNumber(&part.places.step) || !fields->TakeNumber(&part.places.end) ||
        !fields->TakeNumber(&part.count) || !TakeRanges(fields, &part)) {
      return NoCursor(text, "with wrong ranges");
    }
    if (sets < 1 || static_cast<size_t>(sets) > kPartsMax - parts) {
      return NoCursor(text, "of too many places");
    }
    parts += static_cast<size_t>(sets);
    for (; sets > 0; --sets, ++part.places.first) {
      if (!IsSound(part, cursor->items)) return NoCursor(text, "with numbers out of range");
      cursor->layers.back().push_back(part);
    }
  }
  return absl::OkStatus();
}

// Version 1: one set of places; everything below a position, and ranges of positions.
absl::Status TakePositions(absl::string_view text, Fields* fields, Cursor* cursor) {
  ReleasedPart part;
  int64_t last = 0;
  if (!fields->Take("places") || !fields->TakeNumber(&part.places.first) ||
      !fields->TakeNumber(&part.places.step) || !fields->TakeNumber(&part.places.end) ||
      !fields->Take("position") || !fields->TakeNumber(&last) || !fields->Take("done")) {
    return NoCursor(text, "cut short");
  }
  const int64_t items = cursor->items;
  const auto out_of_range = [&] { return NoCursor(text, "with numbers out of range"); };
  if (!IsSound(part.places, items) || last < 0 || last > kPositionsMax) return out_of_range();
  part.count = part.places.IndexAt(last, items);
  while (!fields->empty()) {
    MemberRange range;
    if (!fields->TakeNumber(&range.begin) || !fields->TakeNumber(&range.end)) {
      return NoCursor(text, "with wrong ranges");
    }
    const bool good = range.begin >= last && range.end > range.begin && range.end <= kPositionsMax;
    if (!good) return out_of_range();
    last = range.end;
    range = {part.places.IndexAt(range.begin, items), part.places.IndexAt(range.end, items)};
    if (range.begin == range.end) continue;
    if (range.begin == part.end_index()) {
      (part.done.empty() ? part.count : part.done.back().end) = range.end;
    } else {
      part.done.push_back(range);
    }
  }
  cursor->layers.emplace_back();
  if (part.places.count() > 0) cursor->layers.back().push_back(std::move(part));
  return absl::OkStatus();
}

bool MayJoin(const ReleasedPart& part, const ReleasedPart& next) {
  const PlaceSet& places = part.places;
  return next.places == PlaceSet{places.first + 1, places.step, places.end} &&
         part.count == next.count && part.done == next.done;
}

void AppendPart(const ReleasedPart& part, size_t sets, size_t ranges_max, std::string* text) {
  absl::StrAppend(text, " ", sets, " ", part.places.first, " ", part.places.step, " ",
                  part.places.end, " ", part.count);
  int64_t last = part.count;
  for (size_t i = 0; i < std::min(ranges_max, part.done.size()); ++i) {
    const MemberRange& range = part.done[i];
    absl::StrAppend(text, " ", range.begin - last, " ", range.end - range.begin);
    last = range.end;
  }
}

std::string TextOf(const Cursor& cursor, size_t layers_max, size_t ranges_max) {
  std::string text =
      absl::StrCat(kMagic, " items ", cursor.items, " shuffle ", cursor.shuffle ? 1 : 0, " seed ",
                   cursor.seed, " data ", cursor.data);
  if (cursor.block_items != 1) absl::StrAppend(&text, " block ", cursor.block_items);
  for (size_t l = 0; l < std::min(layers_max, cursor.layers.size()); ++l) {
    absl::StrAppend(&text, " /");
    const ReleasedLayer& layer = cursor.layers[l];
    for (size_t i = 0; i < layer.size();) {
      size_t next = i + 1;
      while (next < layer.size() && MayJoin(layer[next - 1], layer[next])) ++next;
      if (i > 0) absl::StrAppend(&text, " |");
      // Neighbours differ in their first place alone.
      AppendPart(layer[i], next - i, ranges_max, &text);
      i = next;
    }
  }
  return text;
}

}  // namespace

std::string Cursor::ToText() const {
  size_t layers_max = layers.size();
  size_t ranges_max = kBytesMax;
  while (true) {
    std::string text = TextOf(*this, layers_max, ranges_max);
    if (text.size() <= kBytesMax || layers_max == 0) return text;
    if (ranges_max > 0) {
      ranges_max /= 16;
    } else {
      --layers_max;
    }
  }
}

absl::StatusOr<Cursor> Cursor::Parse(absl::string_view text) {
  if (text.size() > kBytesMax) return NoCursor(text, "too long");
  Fields fields(text);
  const bool before = fields.Take(kMagicBefore);
  if (!before && !fields.Take(kMagic)) return NoCursor(text, "of another kind, or version");
  Cursor cursor;
  int shuffle = 0;
  const bool whole = fields.Take("items") && fields.TakeNumber(&cursor.items) &&
                     fields.Take("shuffle") && fields.TakeNumber(&shuffle) && fields.Take("seed") &&
                     fields.TakeNumber(&cursor.seed) &&
                     (before || (fields.Take("data") && fields.TakeNumber(&cursor.data)));
  if (!whole) return NoCursor(text, "cut short");
  if (fields.Take("block") && !fields.TakeNumber(&cursor.block_items)) {
    return NoCursor(text, "cut short");
  }
  cursor.shuffle = shuffle != 0;
  if (cursor.items < 1 || cursor.items > StreamPlan::kItemsMax || cursor.block_items < 1) {
    return NoCursor(text, "with numbers out of range");
  }
  SLUICE_RETURN_IF_ERROR(before ? TakePositions(text, &fields, &cursor)
                                : TakeLayers(text, &fields, &cursor));
  return cursor;
}

}  // namespace sluice
