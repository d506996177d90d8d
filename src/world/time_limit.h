// A limit of time that may be infinite, on the monotonic clock, and what is left of it.
#ifndef SLUICE_SRC_WORLD_TIME_LIMIT_H_
#define SLUICE_SRC_WORLD_TIME_LIMIT_H_

#include <algorithm>
#include <chrono>

#include "absl/time/time.h"

namespace sluice {

class TimeLimit {
 public:
  explicit TimeLimit(absl::Duration length) : length_(length) {}

  absl::Duration length() const { return length_; }
  // Not below 0.
  absl::Duration Left() const {
    const absl::Duration gone = absl::FromChrono(std::chrono::steady_clock::now() - start_);
    return std::max(length_ - gone, absl::ZeroDuration());
  }
  bool Passed() const { return Left() == absl::ZeroDuration(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  absl::Duration length_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_TIME_LIMIT_H_
