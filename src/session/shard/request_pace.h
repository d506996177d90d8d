// Decides how many requests storage is given at once: as many as there is memory for, fewer once
// storage does not keep up.
//
// A link that is shared by too many requests answers none of them in time. So what is late halves
// them, as loss does TCP's window (V. Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988),
// and answers raise them again. Pure: times are the caller's.
#ifndef SLUICE_SRC_SESSION_SHARD_REQUEST_PACE_H_
#define SLUICE_SRC_SESSION_SHARD_REQUEST_PACE_H_

#include <algorithm>
#include <cstdint>

namespace sluice {

class RequestPace {
 public:
  explicit RequestPace(int most) : most_(most), limit_(most) {}

  // Requests that may be under way.
  int limit() const { return limit_; }

  // A request that was begun at `begun_ns` is late, one of `under_way`. True if the limit fell:
  // requests that were begun before it fell last tell nothing new.
  bool Late(int64_t begun_ns, int under_way, int64_t now_ns) {
    if (begun_ns < fell_ns_) return false;
    limit_ = std::clamp(under_way / 2, 1, limit_);
    fell_ns_ = now_ns;
    answers_ = 0;
    return true;
  }

  // A request was answered. As many as the limit raise it by an eighth.
  void Answered() {
    if (limit_ == most_ || ++answers_ < limit_) return;
    limit_ = std::min(most_, limit_ + std::max(1, limit_ / 8));
    answers_ = 0;
  }

 private:
  const int most_;
  int limit_;
  int answers_ = 0;  // since the limit changed
  int64_t fell_ns_ = INT64_MIN;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SHARD_REQUEST_PACE_H_
