// Own half, all halves, their match, own memory, and a last word of all ranks.
#include "session/connect/join_halves.h"

#include <string>
#include <utility>
#include <vector>

#include "plan/connect/check_half.h"
#include "plan/connect/half_code.h"
#include "session/connect/gather_halves.h"
#include "session/connect/own_half.h"

namespace sluice {
namespace {

// Equal bytes are read alike on all ranks.
absl::StatusOr<Match> ReadAndMatch(std::vector<GatheredHalf> gathered, int ranks) {
  std::vector<RankedHalf> halves;
  HalfRoom room;
  for (GatheredHalf& each : gathered) {
    absl::StatusOr<Half> half = DecodeHalf(each.bytes, ranks, &room);
    if (!half.ok()) return half.status();
    if (absl::Status status = CheckHalf(*half, ranks); !status.ok()) return status;
    halves.push_back({*std::move(half), std::move(each.ranks)});
    each.bytes = std::string();  // may be long
  }
  return MatchHalves(halves);
}

}  // namespace

absl::Status JoinHalves(Peers* peers, const MemoryRules& rules, const ConnectSpec& own,
                        Match* match, BoundTensors* bound) {
  const absl::StatusOr<Half> half =
      own.refusal.ok() ? MakeOwnHalf(own, peers->rank(), peers->size(), rules) : own.refusal;
  absl::StatusOr<GatheredHalves> gathered =
      GatherHalves(peers, half.status(), half.ok() ? EncodeHalf(*half) : std::string());
  if (!gathered.ok()) return gathered.status();
  absl::Status status = gathered->loss;
  if (status.ok()) {
    absl::StatusOr<Match> matched = ReadAndMatch(std::move(gathered->halves), peers->size());
    status = matched.status();
    if (matched.ok()) *match = *std::move(matched);
  }
  if (status.ok()) status = bound->Bind(*match, own, peers->rank(), rules);
  return peers->AgreeOn(status, "Connect");
}

}  // namespace sluice
