// A short queue of endings, and marks between them.
#include "session/ending_line.h"

#include "device/device.h"
#include "session/operation_cookie.h"

namespace sluice {
namespace {

// Marks under way, so that the device has room for copies.
constexpr int kMarksMax = Device::kMaxOutstanding / 4;

}  // namespace

absl::Status EndingLine::Mark(CopyQueue* copies) {
  if (all_marked() || marks() == kMarksMax) return absl::OkStatus();
  marks_.push_back(endings_.size() - marked_);
  marked_ = endings_.size();
  return copies->Mark(kMarkCookie);
}

void EndingLine::TakeMark(Engine* engine) {
  const auto end = endings_.begin() + static_cast<ptrdiff_t>(marks_.front());
  for (auto ending = endings_.begin(); ending != end; ++ending) {
    if (!engine->status().ok()) {
      engine->Fail(ending->ticket, engine->status());
      continue;
    }
    engine->Finish(ending->ticket);
    if (ending->run != nullptr) ending->run->BucketDone(ending->index);
  }
  endings_.erase(endings_.begin(), end);
  marked_ -= marks_.front();
  marks_.erase(marks_.begin());
}

}  // namespace sluice
