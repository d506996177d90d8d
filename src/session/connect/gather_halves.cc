// Labels first, then parts. Ranks that have the same half each tell another part of it.
#include "session/connect/gather_halves.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstring>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "plan/connect/half_code.h"
#include "plan/connect/texts.h"
#include "tensor/error_text.h"
#include "tensor/round.h"
#include "tensor/stable_hash.h"

namespace sluice {
namespace {

constexpr char kCall[] = "Connect";

// A rank's description of its half, sent before the half.
struct HalfLabel {
  uint64_t bytes = 0;
  uint64_t hash[2] = {};

  friend auto operator<=>(const HalfLabel&, const HalfLabel&) = default;
};

// Ranks that have the same half; ascending.
struct Group {
  HalfLabel label;
  std::vector<int> ranks;
};

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

// By the first rank of each. `labels`: one per rank.
absl::StatusOr<std::vector<Group>> GroupRanks(const std::vector<HalfLabel>& labels,
                                              int64_t bytes_max) {
  std::vector<Group> groups;
  std::map<HalfLabel, size_t> known;
  const auto most = static_cast<uint64_t>(bytes_max);
  uint64_t bytes = 0;
  for (size_t rank = 0; rank < labels.size(); ++rank) {
    const auto [at, is_new] = known.try_emplace(labels[rank], groups.size());
    if (is_new) {
      groups.push_back({labels[rank], {}});
      // Sizes that ranks claim may overflow when they are added.
      bytes += std::min(labels[rank].bytes, most + 1 - bytes);
    }
    groups[at->second].ranks.push_back(static_cast<int>(rank));
  }
  if (bytes <= most) return groups;
  const auto largest = std::max_element(
      groups.begin(), groups.end(),
      [](const Group& a, const Group& b) { return a.label.bytes < b.label.bytes; });
  return MakeError(
      absl::StatusCode::kResourceExhausted, "what the ranks say of their tensors is more than ",
      bytes_max, " bytes: ", NamedRanks(largest->ranks, kFewRuns),
      largest->ranks.size() == 1 ? " alone has " : " alone have ", largest->label.bytes);
}

// The part of its half that `rank`, which is in `group`, tells.
std::string PartOf(const std::string& half, const Group& group, int rank) {
  const auto index =
      static_cast<size_t>(absl::c_lower_bound(group.ranks, rank) - group.ranks.begin());
  const size_t bytes = CeilDiv(half.size(), group.ranks.size());
  return half.substr(std::min(index * bytes, half.size()), bytes);
}

}  // namespace

absl::StatusOr<GatheredHalves> GatherHalves(Peers* peers, const absl::Status& own,
                                            const std::string& half, int64_t bytes_max) {
  std::vector<HalfLabel> labels;
  if (absl::Status s = ExchangeLabels(peers, own, half, &labels); !s.ok()) return s;
  SLUICE_ASSIGN_OR_RETURN(std::vector<Group> groups, GroupRanks(labels, bytes_max));
  GatheredHalves gathered;
  if (groups.size() == 1) {
    gathered.halves.push_back({half, std::move(groups.front().ranks)});
    return gathered;
  }
  std::string part;
  for (const Group& group : groups) {
    if (absl::c_binary_search(group.ranks, peers->rank())) {
      part = PartOf(half, group, peers->rank());
    }
  }
  SLUICE_ASSIGN_OR_RETURN(std::vector<std::string> parts,
                          peers->Exchange(absl::OkStatus(), part, kCall));
  for (Group& group : groups) {
    std::string whole;
    for (const int rank : group.ranks) {
      whole += std::exchange(parts[static_cast<size_t>(rank)], std::string());
    }
    if (LabelOf(whole) != group.label) {
      gathered.loss.Update(MakeError(absl::StatusCode::kDataLoss, "what ",
                                     NamedRanks(group.ranks, kFewRuns),
                                     " gave came here as something else"));
    }
    gathered.halves.push_back({std::move(whole), std::move(group.ranks)});
  }
  return gathered;
}

}  // namespace sluice
