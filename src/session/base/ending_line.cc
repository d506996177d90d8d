// A short queue of slots, and marks between them.
#include "session/base/ending_line.h"

#include "session/base/operation_cookie.h"

namespace sluice {

void EndingLine::Reserve(size_t slots) {
  slots_.reserve(slots);
  marks_.reserve(CopyQueue::kMarksMax);
}

absl::Status EndingLine::Mark(CopyQueue* copies) {
  if (all_marked() || marks() == CopyQueue::kMarksMax) return absl::OkStatus();
  marks_.push_back(slots_.size() - marked_);
  marked_ = slots_.size();
  return copies->Mark(kMarkCookie);
}

absl::Span<const size_t> EndingLine::First() const {
  return absl::MakeConstSpan(slots_).first(marks_.front());
}

void EndingLine::DropFirst() {
  slots_.erase(slots_.begin(), slots_.begin() + static_cast<ptrdiff_t>(marks_.front()));
  marked_ -= marks_.front();
  marks_.erase(marks_.begin());
}

}  // namespace sluice
