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
  lane.eligible.Push(SequenceOf(lane, record));
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
    // One of two equal ids is only announced, since no id comes in two lanes.
    if (least == nullptr || *id < *least || (*id == *least && !empty)) {
      least = id;
      smallest = place;
    }
  }
  return smallest;
}

bool Engine::AdmitOne() {
  size_t held_by_smallest = 0;
  if (const Place place = Smallest(); place != kNowhere) {
    const Record& smallest = At(place);
    Lane& lane = LaneOf(smallest);
    if (IsHeld(smallest)) {
      held_by_smallest = 1;
    } else if (!lane.Holds(smallest.id)) {
      // All that is smaller has ended, so its channel has room. The rule was kept until now, so a
      // slot is free.
      Admit(lane);
      return true;
    }
  }
  // The rule, for any bucket but the smallest: after it has been admitted a slot is free, or the
  // smallest gives one back.
  if (free_slot_count_ + held_by_smallest < 2) return false;
  return std::any_of(lanes_.begin(), lanes_.end(), [this](Lane& lane) { return AdmitFrom(lane); });
}

// Admits the smallest waiting bucket of a lane that its channel and a freeze allow, if there is
// one.
bool Engine::AdmitFrom(Lane& lane) {
  if (lane.eligible.empty()) return false;
  if (lane.Holds(At(lane, lane.eligible.top()).id)) return false;  // and all others: larger ones
  Admit(lane);
  return true;
}

// Admits the lane's smallest eligible bucket.
void Engine::Admit(Lane& lane) {
  const Place place = PlaceOf(lane, lane.eligible.top());
  lane.eligible.Pop();
  DropStaleOffers(lane);
  Record& record = At(place);
  Channel& channel = ChannelOf(record);
  TakeSlot(record);
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

void Engine::TakeSlot(Record& record) {
  SLUICE_CHECK(free_slot_count_ > 0, "the reserved slot is gone");
  record.slot = free_slots_[--free_slot_count_];

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
  all.staging_bytes += record.staging_bytes;
  all.staging_bytes_peak = std::max(all.staging_bytes_peak, all.staging_bytes);
}

void Engine::ReturnSlot(Record& record) {
  free_slots_[free_slot_count_++] = record.slot;
  Channel& channel = ChannelOf(record);
  const bool had_room = HasRoom(channel);
  --channel.counters.in_flight;
  channel.counters.staging_bytes -= record.staging_bytes;
  --counters_.held_buckets;
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

// Takes ended buckets off the top of the heap. Ended ones below follow when they come up.
void Engine::DropStaleOffers(Lane& lane) {
  SequenceHeap& heap = lane.eligible;
  while (!heap.empty() && HasEnded(At(lane, heap.top()).stage)) heap.Pop();
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
    if (lane.eligible.empty()) continue;
    if (!lane.Holds(At(lane, lane.eligible.top()).id)) return Blocked::kBudget;
    blocked = Blocked::kFrozen;
  }
  return blocked;
}

}  // namespace sluice
