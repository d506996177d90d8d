// The engine's events and commands, and its books. Admission is in admission.cc.
#include "engine/engine.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "tensor/check.h"

namespace sluice {
namespace {

size_t LookAhead(const EngineOptions& options) {
  SLUICE_CHECK(options.look_ahead >= 1 && options.look_ahead <= 1 << 28,
               "look_ahead is from 1 to 2^28");
  return static_cast<size_t>(options.look_ahead);
}

size_t SlotCount(const EngineOptions& options) {
  SLUICE_CHECK(options.slots >= 1, "the budget does not hold one bucket");
  return static_cast<size_t>(options.slots);
}

size_t LaneCount(const EngineOptions& options) {
  SLUICE_CHECK(options.lanes >= 1 && options.lanes <= kMaxLanes, "lanes is from 1 to 4");
  return static_cast<size_t>(options.lanes);
}

size_t ChannelCount(const EngineOptions& options) {
  SLUICE_CHECK(options.channels >= 0, "channels is not negative");
  SLUICE_CHECK(options.max_in_flight >= 1, "max_in_flight is at least 1");
  return static_cast<size_t>(options.channels);
}

}  // namespace

Engine::Engine(const EngineOptions& options)
    : options_(options),
      lanes_(LaneCount(options)),
      place_mask_(std::bit_ceil(LookAhead(options)) - 1),
      channels_(ChannelCount(options)),
      free_slots_(SlotCount(options)),
      free_slot_count_(free_slots_.size()),
      ready_(free_slots_.size()) {
  ring_.resize(lanes_.size() * (place_mask_ + 1));
  for (Lane& lane : lanes_) {
    lane.base = static_cast<Place>(static_cast<size_t>(IndexOf(lane)) * (place_mask_ + 1));
    lane.eligible = SequenceHeap(LookAhead(options));
  }
  for (size_t i = 0; i < free_slots_.size(); ++i) {
    free_slots_[i] = static_cast<int>(free_slots_.size() - 1 - i);
  }
}

bool Engine::CanSubmit(int lane) const {
  const Lane& into = LaneAt(lane);
  return into.tail - into.head < static_cast<uint64_t>(options_.look_ahead) && status_.ok();
}

// Whether the lane may bring this id next. If so then the smallest bucket, where it is known, stays
// the smallest.
void Engine::CheckOrder(const Lane& lane, const BucketId& id) const {
  SLUICE_CHECK(lane.tail == 0 || id > lane.last, "bucket ids must ascend");
  if (lane.open) {
    SLUICE_CHECK(id >= lane.announced, "an id below what the lane announced");
  } else {
    SLUICE_CHECK(!submitted_any_ || id > newest_,
                 "an id below another lane's, and it was not announced");
  }
}

Ticket Engine::Submit(const Submission& submission) {
  SLUICE_CHECK(CanSubmit(submission.lane), "Submit without room, or after a failure");
  Lane& lane = LaneAt(submission.lane);
  CheckOrder(lane, submission.id);
  SLUICE_CHECK(submission.channel >= 0 && submission.channel < options_.channels,
               "no such channel");
  SLUICE_CHECK(submission.staging_bytes >= 0 && submission.operations >= 0, "a negative amount");
  NextStage(Stage::kWaiting, submission.stages);  // checks that there is one

  const Place place = PlaceOf(lane, lane.tail);
  Record& record = At(place);
  record.id = submission.id;
  record.cookie = submission.cookie;
  record.staging_bytes = submission.staging_bytes;
  record.channel = submission.channel;
  record.operations = submission.operations;
  record.ticket =
      static_cast<Ticket>(lane.tail << kLaneBits) | static_cast<Ticket>(submission.lane);
  record.next = kNowhere;
  record.slot = -1;
  record.stage = Stage::kWaiting;
  record.stages = submission.stages;
  record.progress = Progress::kQueued;

  lane.last = submission.id;
  newest_ = std::max(newest_, submission.id);
  submitted_any_ = true;
  ++lane.tail;
  ++live_;
  ++waiting_;
  ++counters_.submitted;
  Channel& channel = ChannelOf(record);
  if (channel.lane < 0) channel.lane = submission.lane;
  SLUICE_CHECK(channel.lane == submission.lane, "the channel belongs to another lane");
  Append(channel, place);
  return record.ticket;
}

bool Engine::Next(Command* command) {
  if (!status_.ok()) return false;
  do {
    if (PopReady(command)) return true;
  } while (AdmitOne());
  CountWaits();
  return false;
}

void Engine::Finish(Ticket ticket) {
  const Place place = Find(ticket);
  Record& record = At(place);
  SLUICE_CHECK(record.progress == Progress::kUnderWay, "no stage of the bucket is under way");
  EndOperations(record);
  if (!status_.ok()) {
    End(place, Stage::kFailed);
  } else if (NextStage(record.stage, record.stages) == Stage::kDone) {
    End(place, Stage::kDone);
  } else {
    Begin(place);
  }
}

void Engine::Fail(Ticket ticket, const absl::Status& status) {
  const Place place = Find(ticket);
  Record& record = At(place);
  SLUICE_CHECK(record.progress == Progress::kUnderWay, "no stage of the bucket is under way");
  EndOperations(record);
  End(place, Stage::kFailed);
  Poison(status);
}

void Engine::Poison(const absl::Status& status) {
  SLUICE_CHECK(!status.ok(), "an OK status is no failure");
  if (!status_.ok()) return;
  status_ = status;
  for (Lane& lane : lanes_) {
    for (uint64_t sequence = lane.head; sequence < lane.tail; ++sequence) {
      const Record& record = At(lane, sequence);
      if (!HasEnded(record.stage) && record.progress != Progress::kUnderWay) {
        End(PlaceOf(lane, sequence), Stage::kFailed);
      }
    }
  }
}

const ChannelCounters& Engine::channel_counters(int channel) const {
  SLUICE_CHECK(channel >= 0 && channel < options_.channels, "no such channel");
  return channels_[static_cast<size_t>(channel)].counters;
}

void Engine::ResetCounters() {
  const EngineCounters now = counters_;
  counters_ = EngineCounters{.held_buckets = now.held_buckets,
                             .held_buckets_peak = now.held_buckets,
                             .staging_bytes = now.staging_bytes,
                             .staging_bytes_peak = now.staging_bytes,
                             .operations = now.operations,
                             .operations_peak = now.operations};
  for (Channel& channel : channels_) {
    const ChannelCounters before = channel.counters;
    channel.counters = ChannelCounters{.in_flight = before.in_flight,
                                       .in_flight_peak = before.in_flight,
                                       .staging_bytes = before.staging_bytes,
                                       .staging_bytes_peak = before.staging_bytes,
                                       .operations = before.operations,
                                       .operations_peak = before.operations};
  }
}

Engine::Place Engine::Find(Ticket ticket) const {
  const size_t index = LaneIndexOf(ticket);
  SLUICE_CHECK(index < lanes_.size(), "the ticket is not live");
  const Place place = PlaceOf(lanes_[index], ticket >> kLaneBits);
  const Record& record = At(place);
  SLUICE_CHECK(record.ticket == ticket && !HasEnded(record.stage), "the ticket is not live");
  return place;
}

// Moves on to the next stage of a held bucket, which has one.
void Engine::Begin(Place place) {
  Record& record = At(place);
  if (NextStage(record.stage, record.stages) != Stage::kMoving) {
    PushReady(place);
    return;
  }
  record.progress = Progress::kTurn;
  GiveTurns(ChannelOf(record));
}

// Lets those buckets of a channel move that wait for nothing but their turn.
void Engine::GiveTurns(Channel& channel) {
  while (channel.unmoved != kNowhere && At(channel.unmoved).progress == Progress::kTurn) {
    const Place place = channel.unmoved;
    PassUnmoved(channel);
    PushReady(place);
  }
}

void Engine::PassUnmoved(Channel& channel) {
  do {
    channel.unmoved = At(channel.unmoved).next;
  } while (channel.unmoved != kNowhere &&
           ((At(channel.unmoved).stages & kStageMove) == 0 || HasEnded(At(channel.unmoved).stage)));
}

void Engine::PushReady(Place place) {
  At(place).progress = Progress::kReady;
  size_t end = ready_begin_ + ready_count_;
  if (end >= ready_.size()) end -= ready_.size();
  ready_[end] = place;
  ++ready_count_;
}

bool Engine::PopReady(Command* command) {
  if (ready_count_ == 0) return false;
  Record& record = At(ready_[ready_begin_]);
  if (++ready_begin_ == ready_.size()) ready_begin_ = 0;
  --ready_count_;
  record.stage = NextStage(record.stage, record.stages);
  record.progress = Progress::kUnderWay;
  if (record.stage == Stage::kMoving) {
    ChannelCounters& channel = ChannelOf(record).counters;
    channel.operations += record.operations;
    channel.operations_peak = std::max(channel.operations_peak, channel.operations);
    counters_.operations += record.operations;
    counters_.operations_peak = std::max(counters_.operations_peak, counters_.operations);
  }
  *command = {.ticket = record.ticket,
              .stage = record.stage,
              .cookie = record.cookie,
              .id = record.id,
              .slot = record.slot};
  return true;
}

void Engine::EndOperations(Record& record) {
  if (record.stage != Stage::kMoving) return;
  ChannelOf(record).counters.operations -= record.operations;
  counters_.operations -= record.operations;
}

void Engine::End(Place place, Stage outcome) {
  Record& record = At(place);
  Channel& channel = ChannelOf(record);
  const bool was_held = IsHeld(record);
  record.stage = outcome;
  --live_;
  switch (outcome) {
    case Stage::kDone:
      ++counters_.finished;
      ++channel.counters.finished;
      break;
    case Stage::kFailed:
      ++counters_.failed;
      break;
    default:
      ++counters_.cancelled;
  }
  if (was_held) {
    ReturnSlot(record);
  } else {
    --waiting_;
    if (channel.waiting == place) PassWaiting(channel);
  }
  if (channel.unmoved == place) {
    PassUnmoved(channel);
    GiveTurns(channel);
  }
  Lane& lane = LaneOf(record);
  if (&record == &At(lane, lane.head)) Retire(lane);
  if (!was_held) DropStaleOffers(lane);
}

}  // namespace sluice
