// A list of moves for each channel.
#include "engine/move_order.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tensor/check.h"

namespace sluice {

void MoveOrder::Reserve(size_t channels, size_t slots) {
  channels_.resize(std::max(channels, channels_.size()));
  moves_.resize(std::max(slots, moves_.size()));
}

absl::Status MoveOrder::Add(size_t slot, int channel, const BucketId& id) {
  SLUICE_CHECK(slot < moves_.size() && moves_[slot].channel == kNone, "the slot has a move");
  SLUICE_CHECK(channel >= 0 && static_cast<size_t>(channel) < channels_.size(), "no such channel");
  Channel& in = channels_[static_cast<size_t>(channel)];
  if (in.any && id <= in.last_id) {
    return absl::InternalError(absl::StrCat("bucket ", id.ToString(), " comes to move in channel ",
                                            channel, " after bucket ", in.last_id.ToString()));
  }
  const bool follows = in.last != kNone && At(in.last).channel == channel;
  moves_[slot] = {.id = id, .channel = channel, .before = follows ? in.last : kNone};
  if (follows) At(in.last).after = static_cast<int>(slot);
  in = {.last_id = id, .any = true, .last = static_cast<int>(slot)};
  return absl::OkStatus();
}

int MoveOrder::RoundsAllowed(size_t slot) const {
  const int before = moves_[slot].before;
  return before == kNone ? std::numeric_limits<int>::max() : At(before).rounds;
}

absl::Status MoveOrder::Begin(size_t slot, int rounds) {
  Move& move = moves_[slot];
  SLUICE_CHECK(move.channel != kNone, "no move is in the slot");
  if (rounds > RoundsAllowed(slot)) {
    const Move& before = At(move.before);
    return absl::InternalError(absl::StrCat("bucket ", move.id.ToString(), " begins round ", rounds,
                                            " of its messages in channel ", move.channel,
                                            " before bucket ", before.id.ToString(),
                                            ", which has begun ", before.rounds));
  }
  move.rounds = rounds;
  return absl::OkStatus();
}

void MoveOrder::End(size_t slot) {
  Move& move = moves_[slot];
  SLUICE_CHECK(move.channel != kNone, "no move is in the slot");
  if (move.before != kNone) At(move.before).after = move.after;
  if (move.after != kNone) {
    At(move.after).before = move.before;
  } else if (move.before != kNone) {
    channels_[static_cast<size_t>(move.channel)].last = move.before;
  }
  move = Move();
}

}  // namespace sluice
