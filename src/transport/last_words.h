// Operations that the end of another rank has cut off, and of which a transport does not tell yet.
#ifndef SLUICE_SRC_TRANSPORT_LAST_WORDS_H_
#define SLUICE_SRC_TRANSPORT_LAST_WORDS_H_

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace sluice {

// A rank that has failed ends, and cuts off operations with others. The failed rank is named beside
// payload: by an alarm, by a link that breaks, by a process that is gone. Such words may take
// another way than payload, and come later. So what names the rank that has ended waits this long.
// If payload alone is broken nobody names a rank, and the error is told then.
inline constexpr std::chrono::seconds kLastWordsTime{2};

// Thread: one.
template <typename Operation>
class LastWords {
 public:
  size_t size() const { return held_.size(); }

  void Hold(Operation operation) { held_.push_back({std::move(operation), Clock::now()}); }

  // Calls `tell` with each operation that has been held for kLastWordsTime, or with all, in their
  // order. To be called whenever events are asked for.
  template <typename Tell>
  void Release(bool all, Tell tell) {
    if (held_.empty()) return;
    const Clock::time_point now = Clock::now();
    auto first = held_.begin();
    for (; first != held_.end() && (all || now - first->since >= kLastWordsTime); ++first) {
      tell(std::move(first->operation));
    }
    held_.erase(held_.begin(), first);
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Held {
    Operation operation;
    Clock::time_point since;
  };
  std::vector<Held> held_;  // the oldest first
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_LAST_WORDS_H_
