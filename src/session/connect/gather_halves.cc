// Labels first, then pieces, a record of each rank per round.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "plan/connect/half_code.h"
#include "plan/connect/pieces.h"
#include "plan/connect/texts.h"
#include "session/connect/gather_halves.h"
#include "tensor/error_text.h"
#include "tensor/stable_hash.h"

namespace sluice {
namespace {

constexpr char kCall[] = "Connect";
constexpr auto kPieceBytes = static_cast<int64_t>(Proposal::kMaxPayloadBytes);

// Eight bytes at a time. Two hashes with different beginnings: halves that differ must not look
// alike by chance.
HalfLabel LabelOf(const std::string& half) {
  HalfLabel label;
  label.bytes = half.size();
  for (size_t i = 0; i < 2; ++i) {
    StableHash hash;
    hash.Add(i);
    for (size_t at = 0; at < half.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, half.data() + at, std::min(sizeof(word), half.size() - at));
      hash.Add(word);
    }
    label.hash[i] = hash.value();
  }
  return label;
}

absl::Status ExchangeLabels(Peers* peers, const absl::Status& own, const std::string& half,
                            std::vector<HalfLabel>* labels) {
  const HalfLabel label = LabelOf(half);
  Proposal proposal;
  proposal.call = kCall;
  proposal.status = own;
  proposal.values = {{"the format of what ranks give", kHalfFormat}};
  proposal.payload.assign(reinterpret_cast<const char*>(&label), sizeof(label));
  if (absl::Status status = peers->Agree(std::move(proposal)); !status.ok()) return status;
  labels->resize(static_cast<size_t>(peers->size()));
  for (int rank = 0; rank < peers->size(); ++rank) {
    const std::string payload = peers->payload(rank);
    if (payload.size() != sizeof(HalfLabel)) {
      return peers->Poison(DisagreementError(
          RankInWords(rank), " runs another build of Sluice: it says ", payload.size(),
          " bytes of what it gives to Connect, not ", sizeof(HalfLabel)));
    }
    std::memcpy(&(*labels)[static_cast<size_t>(rank)], payload.data(), sizeof(HalfLabel));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GatheredHalves> GatherHalves(Peers* peers, const absl::Status& own,
                                            const std::string& half, int64_t bytes_max) {
  std::vector<HalfLabel> labels;
  if (absl::Status s = ExchangeLabels(peers, own, half, &labels); !s.ok()) return s;
  const absl::StatusOr<PieceSchedule> schedule =
      PieceSchedule::Make(labels, kPieceBytes, bytes_max);
  if (!schedule.ok()) return schedule.status();
  GatheredHalves gathered;
  for (const PieceSchedule::Group& group : schedule->groups()) {
    const bool is_own = absl::c_binary_search(group.ranks, peers->rank());
    gathered.halves.push_back({is_own ? half : std::string(group.label.bytes, '\0'), group.ranks});
  }
  // A rank whose bytes are lost goes on, so that the ranks stay in step.
  for (int64_t round = 0; round < schedule->rounds(); ++round) {
    const PieceSchedule::Piece own_piece = schedule->PieceOf(peers->rank(), round);
    const absl::StatusOr<std::vector<std::string>> pieces = peers->Exchange(
        absl::OkStatus(), half.substr(own_piece.begin, own_piece.end - own_piece.begin), kCall);
    if (!pieces.ok()) return pieces.status();
    for (int rank = 0; rank < peers->size(); ++rank) {
      const PieceSchedule::Piece piece = schedule->PieceOf(rank, round);
      const std::string& bytes = (*pieces)[static_cast<size_t>(rank)];
      if (bytes.size() == piece.end - piece.begin) {
        bytes.copy(gathered.halves[piece.group].bytes.data() + piece.begin, bytes.size());
      } else {
        gathered.loss.Update(MakeError(absl::StatusCode::kDataLoss, "a piece of what ",
                                       RankInWords(rank), " gives has ", bytes.size(),
                                       " bytes, not ", piece.end - piece.begin));
      }
    }
  }
  for (const GatheredHalf& each : gathered.halves) {
    if (LabelOf(each.bytes) == labels[static_cast<size_t>(each.ranks.front())]) continue;
    gathered.loss.Update(MakeError(absl::StatusCode::kDataLoss, "what ",
                                   NamedRanks(each.ranks, kFewRuns),
                                   " gave came here as something else"));
  }
  return gathered;
}

}  // namespace sluice
