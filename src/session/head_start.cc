// Counting the first item's pieces.
#include "session/head_start.h"

namespace sluice {

bool HeadStart::MayBegin(int64_t item, int64_t now_ns) {
  if (over_) return true;
  if (begin_ns_ < 0) begin_ns_ = now_ns;
  if (item == 0) {
    ++under_way_;
    return true;
  }
  over_ = under_way_ == 0 || now_ns - begin_ns_ >= longest_ns_;
  holds_ = !over_;
  return over_;
}

void HeadStart::Ended(int64_t item) {
  if (item != 0 || --under_way_ > 0 || !holds_) return;
  over_ = true;
  holds_ = false;
}

}  // namespace sluice
