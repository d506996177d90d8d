// Calls about whole lanes (announce, close, freeze, thaw), and questions about them.
#include <cstdint>
#include <optional>

#include "engine/engine.h"
#include "tensor/check.h"

namespace sluice {

void Engine::Announce(int lane, const BucketId& next) {
  Lane& opened = LaneAt(lane);
  if (opened.open) {
    SLUICE_CHECK(next >= opened.announced, "what a lane announced may not fall");
  } else {
    CheckOrder(opened, next);
  }
  opened.open = true;
  opened.announced = next;
}

void Engine::Close(int lane) { LaneAt(lane).open = false; }

BucketId Engine::Freeze(int lane, uint64_t run) {
  Lane& frozen = LaneAt(lane);
  SLUICE_CHECK(!frozen.frozen, "the lane is frozen already");
  frozen.frozen = true;
  frozen.frozen_from = BucketId({.run = run});
  frozen.frozen_above = LargestAdmitted(frozen, run);
  return frozen.frozen_above;
}

void Engine::Thaw(int lane, uint64_t run, const BucketId& last) {
  Lane& thawed = LaneAt(lane);
  SLUICE_CHECK(thawed.frozen && thawed.frozen_from == BucketId({.run = run}),
               "the lane was not frozen for this run");
  SLUICE_CHECK(last >= thawed.frozen_above, "what was admitted is not to be cancelled");
  thawed.frozen = false;
  for (uint64_t sequence = thawed.head; sequence < thawed.tail; ++sequence) {
    const Record& record = At(thawed, sequence);
    const bool waits = !HasEnded(record.stage) && record.progress == Progress::kQueued;
    if (waits && record.id.fields().run == run && record.id > last) {
      End(PlaceOf(thawed, sequence), Stage::kCancelled);
    }
  }
}

// The largest id of `run` that was ever admitted in the lane. Ids before the lane's head are known
// by their largest one alone, which is enough for a run that has something left.
BucketId Engine::LargestAdmitted(const Lane& lane, uint64_t run) const {
  for (uint64_t sequence = lane.tail; sequence > lane.head; --sequence) {
    const Record& record = At(lane, sequence - 1);
    if (record.progress != Progress::kQueued && record.id.fields().run == run) return record.id;
  }
  const uint64_t retired_run = lane.retired.fields().run;
  SLUICE_CHECK(retired_run <= run, "the run is over here, and a later one has begun to end");
  return retired_run == run ? lane.retired : BucketId();
}

bool Engine::OldestUnfinished(Oldest* oldest) const {
  const Record* least = nullptr;
  int lane_of_least = 0;
  for (const Lane& lane : lanes_) {
    if (lane.head == lane.tail) continue;
    const Record& record = At(lane, lane.head);
    if (least != nullptr && least->id < record.id) continue;
    least = &record;
    lane_of_least = IndexOf(lane);
  }
  if (least == nullptr) return false;
  *oldest = {.id = least->id,
             .stage = least->stage,
             .lane = lane_of_least,
             .channel = least->channel,
             .cookie = least->cookie};
  return true;
}

std::optional<BucketStanding> Engine::StandingOf(int lane, const BucketId& id) const {
  const Lane& in = LaneAt(lane);
  if (in.tail == 0 || id > in.last) return std::nullopt;
  uint64_t low = in.head;
  uint64_t high = in.tail;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (At(in, middle).id < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == in.head && (low == in.tail || At(in, low).id != id)) {
    return BucketStanding{.stage = Stage::kDone, .admitted = true};
  }
  const Record& record = At(in, low);
  if (record.id != id) return std::nullopt;
  return BucketStanding{
      .stage = record.stage,
      .admitted = record.progress != Progress::kQueued || HasEnded(record.stage),
      .under_way = record.progress == Progress::kUnderWay && !HasEnded(record.stage)};
}

}  // namespace sluice
