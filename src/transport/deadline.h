// A point in time that may be infinitely far, on the monotonic clock.
#ifndef SLUICE_SRC_TRANSPORT_DEADLINE_H_
#define SLUICE_SRC_TRANSPORT_DEADLINE_H_

#include <algorithm>
#include <chrono>

#include "absl/time/time.h"

namespace sluice {

class Deadline {
 public:
  explicit Deadline(absl::Duration timeout) : timeout_(timeout) {}

  absl::Duration timeout() const { return timeout_; }
  bool Passed() const { return Left() == absl::ZeroDuration(); }
  // Zero once it has passed.
  absl::Duration Left() const {
    const auto passed = std::chrono::steady_clock::now() - start_;
    return std::max(absl::ZeroDuration(), timeout_ - absl::FromChrono(passed));
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  absl::Duration timeout_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DEADLINE_H_
