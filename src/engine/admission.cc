// Admission: which waiting bucket is admitted next, and what it is charged. docs/gate.md says why.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/engine.h"
#include "tensor/check.h"

namespace sluice {

// Puts a new bucket at the end of its channel's list.
void Engine::Append(Channel& channel, Place place) {
  const Record& record = At(place);
  // Without a cursor nobody reads the list, and its last record may have been used anew.
  if (channel.waiting != kNowhere || channel.unmoved != kNowhere) At(channel.last).next = place;
  channel.last = place;
  if (channel.unmoved == kNowhere && (record.stages & kStageMove) != 0) channel.unmoved = place;
  if (channel.waiting == kNowhere) {
    channel.waiting = place;
    Offer(channel);
  }
}

// Makes the channel's first waiting bucket eligible, if there is one and the channel has room. To
// be called once for each bucket: when it becomes the first with room, or gets room as the first.
void Engine::Offer(const Channel& channel) {
  if (channel.waiting == kNowhere || !HasRoom(channel)) return;
  const Record& record = At(channel.waiting);
  Lane& lane = LaneOf(record);
  lane.eligible[record.slot_count - size_t{1}].Push(SequenceOf(lane, record));
}

// The smallest unfinished bucket, if there is one and no lane can still bring a smaller one.
Engine::Place Engine::Smallest() const {
  Place smallest = kNowhere;
  const BucketId* least = nullptr;
  for (const Lane& lane : lanes_) {
    const bool empty = lane.head == lane.tail;
    if (empty && !lane.open) continue;
    const Place place = empty ? kNowhere : PlaceOf(lane, lane.head);
    const BucketId* const id = empty ? &std::max(lane.announced, lane.last) : &At(place).id;
    // Of equal ids one is only announced: it will not come in a second lane.
    if (least == nullptr || *id < *least || (*id == *least && !empty)) {
      least = id;
      smallest = place;
    }
  }
  return smallest;
}

// The rule, for any bucket but the smallest: after it has been admitted, the slots that are free,
// with those that the smallest gives back, suffice for any bucket.
bool Engine::MayAdmit(int slot_count, int held_by_smallest) const {
  const int free = static_cast<int>(free_slot_count_);
  return free - slot_count + held_by_smallest >= options_.slots_per_bucket_max;
}

bool Engine::AdmitOne() {
  int held_by_smallest = 0;
  if (const Place place = Smallest(); place != kNowhere) {
    const Record& smallest = At(place);
    Lane& lane = LaneOf(smallest);
    if (IsHeld(smallest)) {
      held_by_smallest = smallest.slot_count;
    } else if (!lane.Holds(smallest.id)) {
      // All that is smaller has ended, so its channel has room. The rule was kept until now, so its
      // slots are free.
      Admit(lane, lane.eligible[smallest.slot_count - size_t{1}]);
      return true;
    }
  }
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [&](Lane& lane) { return AdmitFrom(lane, held_by_smallest); });
}

// Admits the smallest waiting bucket of a lane that the rule allows, if there is one.
bool Engine::AdmitFrom(Lane& lane, int held_by_smallest) {
  SequenceHeap* best = nullptr;
  for (int slot_count = 1; slot_count <= options_.slots_per_bucket_max; ++slot_count) {
    SequenceHeap& heap = lane.eligible[static_cast<size_t>(slot_count) - 1];
    if (heap.empty() || !MayAdmit(slot_count, held_by_smallest)) continue;
    if (lane.Holds(At(lane, heap.top()).id)) continue;  // and all below it, which are larger
    if (best == nullptr || heap.top() < best->top()) best = &heap;
  }
  if (best == nullptr) return false;
  Admit(lane, *best);
  return true;
}

// Admits the bucket on top of `heap`, one of the lane's.
void Engine::Admit(Lane& lane, SequenceHeap& heap) {
  const Place place = PlaceOf(lane, heap.top());
  heap.Pop();
  DropStaleOffers(lane);
  Record& record = At(place);
  Channel& channel = ChannelOf(record);
  TakeSlots(record);
  --waiting_;
  record.progress = Progress::kReady;
  PassWaiting(channel);
  Begin(place);
}

// Moves on from the first waiting bucket, which has been admitted or cancelled, and offers the one
// after it.
void Engine::PassWaiting(Channel& channel) {
  do {
    channel.waiting = At(channel.waiting).next;
  } while (channel.waiting != kNowhere && HasEnded(At(channel.waiting).stage));
  Offer(channel);
}

void Engine::TakeSlots(Record& record) {
  SLUICE_CHECK(free_slot_count_ >= record.slot_count, "the reserved slot is gone");
  for (size_t i = 0; i < record.slot_count; ++i) record.slots[i] = free_slots_[--free_slot_count_];

  ChannelCounters& channel = ChannelOf(record).counters;
  ++channel.admitted;
  ++channel.in_flight;
  channel.in_flight_peak = std::max(channel.in_flight_peak, channel.in_flight);
  channel.staging_bytes += record.staging_bytes;
  channel.staging_bytes_peak = std::max(channel.staging_bytes_peak, channel.staging_bytes);

  EngineCounters& all = counters_;
  ++all.admitted;
  ++all.held_buckets;
  all.held_buckets_peak = std::max(all.held_buckets_peak, all.held_buckets);
  all.held_slots += record.slot_count;
  all.held_slots_peak = std::max(all.held_slots_peak, all.held_slots);
  all.staging_bytes += record.staging_bytes;
  all.staging_bytes_peak = std::max(all.staging_bytes_peak, all.staging_bytes);
}

void Engine::ReturnSlots(Record& record) {
  for (size_t i = record.slot_count; i > 0; --i) {
    free_slots_[free_slot_count_++] = record.slots[i - 1];
  }
  Channel& channel = ChannelOf(record);
  const bool had_room = HasRoom(channel);
  --channel.counters.in_flight;
  channel.counters.staging_bytes -= record.staging_bytes;
  --counters_.held_buckets;
  counters_.held_slots -= record.slot_count;
  counters_.staging_bytes -= record.staging_bytes;
  if (!had_room) Offer(channel);
}

// Moves on from the lane's smallest bucket, which has ended.
void Engine::Retire(Lane& lane) {
  do {
    const Record& record = At(lane, lane.head);
    if (record.progress != Progress::kQueued) lane.retired = record.id;
    ++lane.head;
  } while (lane.head < lane.tail && HasEnded(At(lane, lane.head).stage));
}

// Takes ended buckets off the tops of the heaps. Those below follow when they come up.
void Engine::DropStaleOffers(Lane& lane) {
  for (SequenceHeap& heap : lane.eligible) {
    while (!heap.empty() && HasEnded(At(lane, heap.top()).stage)) heap.Pop();
  }
}

// Next has given all it can: whatever waits now, and is newer than the last time, has had to wait.
void Engine::CountWaits() {
  for (Lane& lane : lanes_) {
    for (uint64_t i = std::max(lane.waits_counted, lane.head); i < lane.tail; ++i) {
      const Record& record = At(lane, i);
      if (HasEnded(record.stage) || record.progress != Progress::kQueued) continue;
      if (HasRoom(ChannelOf(record))) {
        ++counters_.waited_for_budget;
      } else {
        ++counters_.waited_for_channel;
      }
    }
    lane.waits_counted = lane.tail;
  }
}

Blocked Engine::blocked() const {
  if (waiting_ == 0) return Blocked::kNothingWaiting;
  Blocked blocked = Blocked::kChannel;
  for (const Lane& lane : lanes_) {
    for (const SequenceHeap& heap : lane.eligible) {
      if (heap.empty()) continue;
      if (!lane.Holds(At(lane, heap.top()).id)) return Blocked::kBudget;
      blocked = Blocked::kFrozen;
    }
  }
  return blocked;
}

}  // namespace sluice
