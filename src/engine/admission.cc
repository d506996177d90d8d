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
  eligible_[record.slot_count - size_t{1}].Push(SequenceOf(record));
}

// The rule. `sequence` waits, and its channel has room. After it has been admitted, the slots that
// are free, with those that the smallest unfinished bucket gives back, suffice for any bucket.
bool Engine::MayAdmit(uint64_t sequence, int slot_count) const {
  if (sequence == head_) return true;  // the rule was kept until now, so its slots are free
  const Record& smallest = At(PlaceOf(head_));
  const int held_by_smallest = IsHeld(smallest) ? smallest.slot_count : 0;
  const int free = static_cast<int>(free_slot_count_);
  return free - slot_count + held_by_smallest >= options_.slots_per_bucket_max;
}

bool Engine::AdmitOne() {
  SequenceHeap* best = nullptr;
  for (int slot_count = 1; slot_count <= kMaxSlotsPerBucket; ++slot_count) {
    SequenceHeap& heap = eligible_[static_cast<size_t>(slot_count) - 1];
    if (heap.empty() || !MayAdmit(heap.top(), slot_count)) continue;
    if (best == nullptr || heap.top() < best->top()) best = &heap;
  }
  if (best == nullptr) return false;
  const Place place = PlaceOf(best->top());
  best->Pop();
  DropStaleOffers();
  Admit(place);
  return true;
}

void Engine::Admit(Place place) {
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

// Takes ended buckets off the tops of the heaps. Those below follow when they come up.
void Engine::DropStaleOffers() {
  for (SequenceHeap& heap : eligible_) {
    while (!heap.empty() && HasEnded(At(PlaceOf(heap.top())).stage)) heap.Pop();
  }
}

// Next has given all it can: whatever waits now, and is newer than the last time, has had to wait.
void Engine::CountWaits() {
  for (uint64_t i = std::max(waits_counted_, head_); i < tail_; ++i) {
    const Record& record = At(PlaceOf(i));
    if (HasEnded(record.stage) || record.progress != Progress::kQueued) continue;
    if (HasRoom(ChannelOf(record))) {
      ++counters_.waited_for_budget;
    } else {
      ++counters_.waited_for_channel;
    }
  }
  waits_counted_ = tail_;
}

Blocked Engine::blocked() const {
  if (waiting_ == 0) return Blocked::kNothingWaiting;
  for (const SequenceHeap& heap : eligible_) {
    if (!heap.empty()) return Blocked::kBudget;
  }
  return Blocked::kChannel;
}

}  // namespace sluice
