// The resources of a rank beside its gate: an arena of staging bytes, a stream that moves are
// launched on, device slots for what it delivers. The premises of law 2 about these can be on or
// off (rules.h). Buckets are named by their index among the rank's.
#ifndef SLUICE_TESTS_DEADLOCK_RANK_RESOURCES_H_
#define SLUICE_TESTS_DEADLOCK_RANK_RESOURCES_H_

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace sluice::deadlock {

// Bytes handed out in ranges, each at the lowest place where it fits.
class FirstFitArena {
 public:
  explicit FirstFitArena(int bytes) : bytes_(bytes) {}

  // Where the range begins, or nothing if no gap is long enough.
  std::optional<int> Take(int bytes);
  void Give(int begin) { taken_.erase(begin); }

 private:
  int bytes_;
  std::map<int, int> taken_;  // from begin to end
};

// A stream runs one group of moves at a time, until the last of them has ended.
class LaunchStream {
 public:
  // `moves`: all there will be, in id order. `in_order`: each is a group, launched in this order;
  // otherwise what is ready when the stream falls idle is one.
  LaunchStream(std::vector<size_t> moves, bool in_order)
      : moves_(std::move(moves)), in_order_(in_order) {}

  void Ready(size_t move) { ready_.insert(move); }
  // The group that begins now; empty if none does.
  std::vector<size_t> Launch();
  void Ended() { --running_; }

 private:
  std::vector<size_t> moves_;
  bool in_order_;
  size_t next_ = 0;  // of moves_: to be launched next, if in order
  std::set<size_t> ready_;
  size_t running_ = 0;
};

// Device slots that drains fill and that the consumer frees by taking what is in them, in order.
class DeviceSlots {
 public:
  // `items`: all that will be delivered, in delivery order. `in_order`: slots are granted in it.
  DeviceSlots(int slots, std::vector<size_t> items, bool in_order)
      : free_(slots), items_(std::move(items)), in_order_(in_order) {}

  void Ask(size_t item) { asking_.push_back(item); }
  // The item that gets a slot now, if one does.
  std::optional<size_t> Grant();
  void Filled(size_t item) { filled_.insert(item); }
  bool CanTake() const { return taken_ < items_.size() && filled_.count(items_[taken_]) > 0; }
  void Take();
  // What the consumer waits for; call it while there is something.
  size_t next_taken() const { return items_[taken_]; }

 private:
  int free_;
  std::vector<size_t> items_;
  bool in_order_;
  size_t granted_ = 0;          // of items_, if in order
  size_t taken_ = 0;            // of items_
  std::vector<size_t> asking_;  // in the order in which they came
  std::set<size_t> filled_;
};

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_RANK_RESOURCES_H_
