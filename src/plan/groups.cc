// Which ids belong together.
#include "plan/groups.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_map.h"

namespace sluice {
namespace {

// Of rounds in a group. Each has a message from a rank to another one, as a rule, and a kernel of
// NCCL takes about 7 large ones.
constexpr int64_t kRoundsMax = 4;

bool InOneRound(const BucketIdFields& a, const BucketIdFields& b) {
  return a.window == b.window && a.round == b.round;
}

// Counts buckets since the last Clear: all, and at most of one channel.
class Tally {
 public:
  void Clear() {
    all_ = 0;
    by_channel_.clear();
  }
  void Add(int32_t channel, int64_t* all_max, int64_t* channel_max) {
    *all_max = std::max(*all_max, ++all_);
    *channel_max = std::max(*channel_max, ++by_channel_[channel]);
  }

 private:
  int64_t all_ = 0;
  absl::flat_hash_map<int32_t, int64_t> by_channel_;
};

}  // namespace

GroupNeed NeedOf(const Plan& plan) {
  GroupNeed need;
  Tally round;
  Tally phase;
  BucketIdFields last;
  for (const Bucket& bucket : plan.buckets) {
    const BucketIdFields id = bucket.id.fields();
    const bool same_round = InOneRound(id, last);
    if (!same_round) round.Clear();
    if (!same_round || id.phase != last.phase) phase.Clear();
    last = id;
    round.Add(bucket.channel, &need.round, &need.channel_round);
    phase.Add(bucket.channel, &need.phase, &need.channel_phase);
  }
  return need;
}

GroupNeed Most(const GroupNeed& a, const GroupNeed& b) {
  return {std::max(a.round, b.round), std::max(a.phase, b.phase),
          std::max(a.channel_round, b.channel_round), std::max(a.channel_phase, b.channel_phase)};
}

GroupCut CutFor(const GroupNeed& most, int64_t slots, int max_in_flight) {
  const int64_t room = slots == 0 ? std::numeric_limits<int64_t>::max() : slots;
  const int64_t half = std::max<int64_t>(1, room / 2);
  const GroupNeed need = Most(most, {1, 1, 1, 1});
  const int64_t rounds =
      std::min({kRoundsMax, half / need.round, max_in_flight / need.channel_round});
  if (rounds > 0) return {.rounds = rounds, .phases = 0};
  if (need.phase > room || need.channel_phase > max_in_flight) return {.single = true};
  // Of several phases a channel may have what it has of the round.
  if (need.channel_round > max_in_flight) return {.phases = 1};
  return {.phases = std::max<int64_t>(1, half / need.phase)};
}

bool InOneGroup(const GroupCut& cut, const BucketId& a, const BucketId& b) {
  if (cut.single) return a == b;
  const BucketIdFields x = a.fields();
  const BucketIdFields y = b.fields();
  if (x.window != y.window) return false;
  const auto rounds = static_cast<uint64_t>(cut.rounds);
  if (cut.phases == 0) return x.round / rounds == y.round / rounds;
  const auto phases = static_cast<uint64_t>(cut.phases);
  return x.round == y.round && x.phase / phases == y.phase / phases;
}

size_t GroupEnd(const Plan& plan, const GroupCut& cut, size_t begin) {
  size_t end = begin + 1;
  while (end < plan.buckets.size() &&
         InOneGroup(cut, plan.buckets[begin].id, plan.buckets[end].id)) {
    ++end;
  }
  return end;
}

}  // namespace sluice
