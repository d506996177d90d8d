// Finds the ids that belong together.
#include "plan/groups.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_map.h"

namespace sluice {
namespace {

// Most rounds in a group. A round has a message from a rank to another one, as a rule. A kernel of
// NCCL takes about 7 large messages.
constexpr int64_t kRoundsMax = 4;

// NCCL 2.28: the parts of operations that the 4 KiB of a kernel's arguments hold, if no two parts
// share an entry.
constexpr int64_t kKernelParts = 253;
// For sends and receives, where nobody has asked for fewer.
constexpr int64_t kKernelChannels = 32;
// A larger part is halved, while there are channels.
constexpr int64_t kPartBytesInNode = int64_t{16} << 20;
constexpr int64_t kPartBytes = int64_t{512} << 10;

bool InOneRound(const BucketIdFields& a, const BucketIdFields& b) {
  return a.window == b.window && a.round == b.round;
}

// Sends and receives of this rank in each bucket of the channel.
int64_t OperationsIn(const Channel& channel) {
  return channel.child_count + channel.added_count + (channel.parent.peer >= 0 ? 1 : 0) +
         (channel.owner.peer >= 0 ? 1 : 0);
}

// Counts buckets since the last Clear: all, and at most of one channel; and operations.
class Tally {
 public:
  void Clear() {
    all_ = 0;
    operations_ = 0;
    by_channel_.clear();
  }
  void Add(int32_t channel, int64_t* all_max, int64_t* channel_max) {
    *all_max = std::max(*all_max, ++all_);
    *channel_max = std::max(*channel_max, ++by_channel_[channel]);
  }
  void AddOperations(int64_t operations, int64_t* max) {
    operations_ += operations;
    *max = std::max(*max, operations_);
  }

 private:
  int64_t all_ = 0;
  int64_t operations_ = 0;
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
    const int64_t operations = OperationsIn(plan.channels[static_cast<size_t>(bucket.channel)]);
    round.AddOperations(operations, &need.operations_round);
    phase.AddOperations(operations, &need.operations_phase);
    need.operation_bytes =
        std::max({need.operation_bytes, bucket.bytes, bucket.contribution_bytes});
  }
  return need;
}

GroupNeed Most(const GroupNeed& a, const GroupNeed& b) {
  return {std::max(a.round, b.round),
          std::max(a.phase, b.phase),
          std::max(a.channel_round, b.channel_round),
          std::max(a.channel_phase, b.channel_phase),
          std::max(a.operations_round, b.operations_round),
          std::max(a.operations_phase, b.operations_phase),
          std::max(a.operation_bytes, b.operation_bytes)};
}

int64_t OperationsOfKernel(int ranks, bool one_node, int64_t operation_bytes) {
  int64_t parts = kKernelChannels;
  while (parts > 1 && parts * ranks > kKernelChannels) parts /= 2;
  const int64_t part_bytes = one_node ? kPartBytesInNode : kPartBytes;
  while (parts < kKernelChannels && operation_bytes > parts * part_bytes) parts *= 2;
  return kKernelParts / parts;
}

GroupCut CutFor(const GroupNeed& most, const GroupLimits& limits) {
  constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  const int64_t room = limits.slots == 0 ? kUnlimited : limits.slots;
  const int64_t half = std::max<int64_t>(1, room / 2);
  const int64_t operations = limits.operations == 0 ? kUnlimited : limits.operations;
  const int64_t in_flight = limits.max_in_flight;
  const GroupNeed need = Most(most, {1, 1, 1, 1, 1, 1, 1});
  const int64_t rounds = std::min({kRoundsMax, half / need.round, in_flight / need.channel_round,
                                   operations / need.operations_round});
  if (rounds > 0) return {.rounds = rounds, .phases = 0};
  if (need.phase > room || need.channel_phase > in_flight || need.operations_phase > operations) {
    return {.single = true};
  }
  // With several phases a channel may have as many buckets in flight as in the whole round.
  if (need.channel_round > in_flight) return {.phases = 1};
  const int64_t phases = std::min(half / need.phase, operations / need.operations_phase);
  return {.phases = std::max<int64_t>(1, phases)};
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
