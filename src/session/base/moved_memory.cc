// Ranges of memory that views have, and their places in one block.
#include "session/base/moved_memory.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "tensor/error_text.h"
#include "tensor/round.h"

namespace sluice {
namespace {

constexpr uintptr_t kAlignment = 64;

}  // namespace

absl::Status MovedMemory::Add(TensorView* view, const std::string& name) {
  for (size_t i = 0; i < view->boxes.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(Add(&view->boxes[i], absl::StrCat(name, ", box ", i)));
  }
  if (!view->boxes.empty()) return absl::OkStatus();
  BoundView bound;
  const ViewNeed need = {view->shape, view->dtype};
  if (absl::Status status = BindView(*view, need, MemoryRules(), /*writable=*/false, &bound);
      !status.ok()) {
    return MakeError(status.code(), name, ": ", status);
  }
  if (bound.base == nullptr) return absl::OkStatus();
  views_.push_back({RangeOf(bound), bound.base, view});
  return absl::OkStatus();
}

absl::StatusOr<MovedMemory> MovedMemory::Make(absl::Span<TensorView> views) {
  MovedMemory move;
  for (size_t i = 0; i < views.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(move.Add(&views[i], absl::StrCat("view ", i)));
  }
  std::sort(move.views_.begin(), move.views_.end(),
            [](const Moved& a, const Moved& b) { return a.at.begin < b.at.begin; });
  for (const Moved& moved : move.views_) {
    if (!move.ranges_.empty() && moved.at.begin < move.ranges_.back().at.end) {
      uintptr_t& end = move.ranges_.back().at.end;
      end = std::max(end, moved.at.end);
    } else {
      move.ranges_.push_back({moved.at, moved.data});
    }
  }
  for (Range& range : move.ranges_) {
    range.place = RoundUp(move.bytes_, int64_t{kAlignment}) +
                  static_cast<int64_t>(range.at.begin % kAlignment);
    move.bytes_ = range.place + static_cast<int64_t>(range.at.end - range.at.begin);
  }
  return move;
}

void MovedMemory::MoveTo(std::byte* memory) const {
  for (const Range& range : ranges_) {
    std::memcpy(memory + range.place, range.data, range.at.end - range.at.begin);
  }
  auto range = ranges_.begin();
  for (const Moved& moved : views_) {
    while (moved.at.begin >= range->at.end) ++range;
    TensorView* const view = moved.view;
    view->data = memory + range->place + static_cast<int64_t>(moved.at.begin - range->at.begin);
    view->byte_offset = 0;
  }
}

}  // namespace sluice
