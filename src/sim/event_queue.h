// Future events in simulated time, earliest first. Equal content, equal order: events of
// one instant come out by their number, whatever order they went in.
#ifndef SLUICE_SRC_SIM_EVENT_QUEUE_H_
#define SLUICE_SRC_SIM_EVENT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/network_model.h"

namespace sluice::sim {

struct Event {
  TimePs time = 0;
  uint64_t number = 0;  // its kind and what it is about, as the caller packs them

  friend bool operator<(const Event& a, const Event& b) {
    return a.time != b.time ? a.time < b.time : a.number < b.number;
  }
};

// A heap in which each event has four below it: most of an event's way down stays in one cache
// line.
class EventQueue {
 public:
  bool empty() const { return events_.empty(); }
  const Event& top() const { return events_.front(); }

  void Push(const Event& event) {
    size_t at = events_.size();
    events_.push_back(event);
    while (at > 0) {
      const size_t above = (at - 1) / kArity;
      if (!(event < events_[above])) break;
      events_[at] = events_[above];
      at = above;
    }
    events_[at] = event;
  }

  void Pop() {
    const Event last = events_.back();
    events_.pop_back();
    if (events_.empty()) return;
    size_t at = 0;
    while (true) {
      const size_t first = at * kArity + 1;
      if (first >= events_.size()) break;
      const size_t end = first + kArity < events_.size() ? first + kArity : events_.size();
      size_t least = first;
      for (size_t i = first + 1; i < end; ++i) {
        if (events_[i] < events_[least]) least = i;
      }
      if (!(events_[least] < last)) break;
      events_[at] = events_[least];
      at = least;
    }
    events_[at] = last;
  }

 private:
  static constexpr size_t kArity = 4;
  std::vector<Event> events_;
};

}  // namespace sluice::sim

#endif  // SLUICE_SRC_SIM_EVENT_QUEUE_H_
