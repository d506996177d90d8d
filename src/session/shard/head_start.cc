// Counting the first item's pieces.
#include "session/shard/head_start.h"

namespace sluice {

bool HeadStart::MayBegin(int64_t item, int64_t now_ns) {
  if (item == 0) ++under_way_;
  if (over_) return true;
  if (begin_ns_ < 0) begin_ns_ = now_ns;
  if (item == 0) return true;
  over_ = under_way_ == 0 || now_ns - begin_ns_ >= longest_ns_;
  holds_ = !over_;
  return over_;
}

bool HeadStart::MaySend(int64_t item, int64_t now_ns) {
  if (item == 0 || sends_free_) return true;
  if (sends_ns_ < 0) sends_ns_ = now_ns;
  sends_free_ = under_way_ == 0 || now_ns - sends_ns_ >= longest_for_sends_ns_;
  holds_sends_ = !sends_free_;
  return sends_free_;
}

void HeadStart::Ended(int64_t item) {
  if (item != 0 || --under_way_ > 0 || !holds_) return;
  over_ = true;
  holds_ = false;
}

}  // namespace sluice
