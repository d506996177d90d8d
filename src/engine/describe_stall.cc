// The engine's state in words, for the report of a watchdog. Decides nothing.
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
    case Blocked::kBudget:
      return "the budget has no slot to spare";
  }
  return "unknown";
}

}  // namespace

std::string Engine::DescribeStall() const {
  if (idle()) return "no unfinished bucket\n";
  const Record& oldest = At(PlaceOf(head_));
  const ChannelCounters& channel = channel_counters(oldest.channel);

  constexpr size_t kStages = 4;
  std::array<int, kStages> live_by_stage = {};
  int between = 0;
  for (uint64_t sequence = head_; sequence < tail_; ++sequence) {
    const Record& record = At(PlaceOf(sequence));
    if (HasEnded(record.stage)) continue;
    if (record.progress == Progress::kTurn || record.progress == Progress::kReady) {
      ++between;
    } else {
      ++live_by_stage[static_cast<size_t>(record.stage)];
    }
  }

  const char* progress = oldest.progress == Progress::kUnderWay ? ", under way"
                         : IsHeld(oldest)                       ? ", its next stage not yet begun"
                                                                : "";
  std::string text =
      absl::StrCat("smallest unfinished bucket: ", oldest.id.ToString(), "\n",     //
                   "  stage: ", StageName(oldest.stage), progress, "\n",           //
                   "  channel ", oldest.channel, ": ", channel.in_flight, " of ",  //
                   options_.max_in_flight, " in flight, ", channel.finished, " finished\n");
  absl::StrAppend(&text, "slots: ", counters_.held_slots, " of ", options_.slots, " held by ",
                  counters_.held_buckets, " buckets\n");
  absl::StrAppend(&text, "live buckets: ");
  for (size_t stage = 0; stage < kStages; ++stage) {
    absl::StrAppend(&text, live_by_stage[stage], " ", StageName(static_cast<Stage>(stage)), ", ");
  }
  absl::StrAppend(&text, between, " between stages\n");
  absl::StrAppend(&text, "admission: ", BlockedText(blocked()), "\n");
  if (!status_.ok()) absl::StrAppend(&text, "failed: ", status_.ToString(), "\n");
  return text;
}

}  // namespace sluice
