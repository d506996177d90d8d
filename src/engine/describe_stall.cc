// The engine's state in words, for the report of a watchdog. Decides nothing.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/engine.h"

namespace sluice {
namespace {

const char* BlockedText(Blocked blocked) {
  switch (blocked) {
    case Blocked::kNothingWaiting:
      return "nothing waits for admission";
    case Blocked::kChannel:
      return "the channels of all waiting buckets are full";
    case Blocked::kFrozen:
      return "what could be admitted is of frozen runs";
    case Blocked::kBudget:
      return "the budget has no slot to spare";
  }
  return "unknown";
}

}  // namespace

void Engine::DescribeStages(std::string* text) const {
  constexpr size_t kStages = 4;
  std::array<int, kStages> live_by_stage = {};
  int between = 0;
  for (const Lane& lane : lanes_) {
    for (uint64_t sequence = lane.head; sequence < lane.tail; ++sequence) {
      const Record& record = At(lane, sequence);
      if (HasEnded(record.stage)) continue;
      if (record.progress == Progress::kTurn || record.progress == Progress::kReady) {
        ++between;
      } else {
        ++live_by_stage[static_cast<size_t>(record.stage)];
      }
    }
  }
  absl::StrAppend(text, "live buckets: ");
  for (size_t stage = 0; stage < kStages; ++stage) {
    absl::StrAppend(text, live_by_stage[stage], " ", StageName(static_cast<Stage>(stage)), ", ");
  }
  absl::StrAppend(text, between, " between stages\n");
}

// Says what lies in each lane, and what the lane keeps the others from.
void Engine::DescribeLanes(std::string* text) const {
  for (const Lane& lane : lanes_) {
    int waiting = 0;
    int held = 0;
    for (uint64_t sequence = lane.head; sequence < lane.tail; ++sequence) {
      const Record& record = At(lane, sequence);
      if (HasEnded(record.stage)) continue;
      ++(record.progress == Progress::kQueued ? waiting : held);
    }
    absl::StrAppend(text, "lane ", IndexOf(lane), ": ", waiting, " waiting, ", held, " held");
    if (lane.open) {
      const BucketId& next = std::max(lane.announced, lane.last);
      absl::StrAppend(text, "; to come: not below ", next.ToString());
    }
    if (lane.frozen) {
      absl::StrAppend(text, "; frozen from run ", lane.frozen_from.fields().run, " on");
    }
    absl::StrAppend(text, "\n");
  }
  if (live_ > 0 && Smallest() == kNowhere) {
    absl::StrAppend(text, "a lane may still bring a smaller bucket than any here\n");
  }
}

std::string Engine::DescribeStall() const {
  Oldest found;
  if (!OldestUnfinished(&found)) return "no unfinished bucket\n";
  const Lane& lane_of_oldest = LaneAt(found.lane);
  const Record& oldest = At(lane_of_oldest, lane_of_oldest.head);
  const ChannelCounters& channel = channel_counters(oldest.channel);

  const char* progress = oldest.progress == Progress::kUnderWay ? ", under way"
                         : IsHeld(oldest)                       ? ", its next stage not yet begun"
                                                                : "";
  std::string text =
      absl::StrCat("smallest unfinished bucket: ", oldest.id.ToString(), "\n",     //
                   "  stage: ", StageName(oldest.stage), progress, "\n",           //
                   "  channel ", oldest.channel, ": ", channel.in_flight, " of ",  //
                   options_.max_in_flight, " in flight, ", channel.finished, " finished\n");
  absl::StrAppend(&text, "slots: ", counters_.held_buckets, " of ", options_.slots, " held\n");
  DescribeStages(&text);
  if (options_.lanes > 1) DescribeLanes(&text);
  absl::StrAppend(&text, "admission: ", BlockedText(blocked()), "\n");
  if (!status_.ok()) absl::StrAppend(&text, "failed: ", status_.ToString(), "\n");
  return text;
}

}  // namespace sluice
