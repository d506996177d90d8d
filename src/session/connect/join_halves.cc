// Own half, all halves, their match, own memory, and a last word of all ranks.
#include "session/connect/join_halves.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "plan/connect/check_half.h"
#include "plan/connect/half.h"
#include "plan/connect/half_builder.h"
#include "plan/connect/half_code.h"
#include "plan/connect/texts.h"
#include "session/connect/gather_halves.h"
#include "session/connect/tensor_needs.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// Layouts as a half has them: boxes are of kHalfBoxesRank, whoever has them. Keeps what it gives.
class HalfLayouts {
 public:
  // A layout that has more than boxes stays as it is: CheckHalf refuses it. A list of boxes that is
  // not of one rank stays, too: CheckPlace refuses it.
  const Layout& Of(const Layout& layout) {
    const bool boxes_alone = layout.mesh.ranks().empty() && layout.placements.empty() &&
                             layout.order.empty() && layout.whole.empty() && layout.offset.empty();
    if (layout.boxes.ranks().size() != 1 || !boxes_alone) return layout;
    const auto [at, is_new] = by_identity_.try_emplace(layout.boxes.identity());
    if (is_new) {
      std::vector<RankBoxes> own = {{kHalfBoxesRank, layout.boxes.ranks()[0].boxes}};
      at->second = std::make_unique<Layout>();
      at->second->boxes = BoxList::Create(std::move(own)).value();
    }
    return *at->second;
  }

 private:
  absl::flat_hash_map<const void*, std::unique_ptr<Layout>> by_identity_;
};

std::vector<HalfTensor> Describe(const std::vector<ConnectTensor>& tensors, HalfLayouts* layouts,
                                 HalfBuilder* builder) {
  std::vector<HalfTensor> described;
  described.reserve(tensors.size());
  for (const ConnectTensor& tensor : tensors) {
    const Layout& layout = layouts->Of(tensor.layout);
    described.push_back(
        {tensor.name, builder->KindOf(tensor.shape, tensor.dtype, layout), tensor.window});
  }
  return described;
}

absl::Status CheckPlace(const Layout& layout, int rank) {
  std::vector<int> ranks;
  if (layout.boxes.empty()) {
    if (layout.mesh.PositionOf(rank)) return absl::OkStatus();
    ranks.assign(layout.mesh.ranks().begin(), layout.mesh.ranks().end());
    absl::c_sort(ranks);
    return MakeError(absl::StatusCode::kInvalidArgument, RankInWords(rank),
                     " gives it, but its mesh is of ", NamedRanks(ranks, kFewRuns));
  }
  for (const RankBoxes& of : layout.boxes.ranks()) ranks.push_back(of.rank);
  if (ranks.size() == 1 && ranks[0] == rank) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, RankInWords(rank), " gives boxes of ",
                   NamedRanks(ranks, kFewRuns), ", but each rank gives its own ones alone");
}

// Before there is a half: it does not know whose the boxes are that it is made of.
absl::Status CheckPlaces(const std::vector<ConnectTensor>& tensors, int rank, const char* side) {
  for (const ConnectTensor& tensor : tensors) {
    if (tensor.layout.boxes.empty()) continue;
    const absl::Status status = CheckPlace(tensor.layout, rank);
    if (status.ok()) continue;
    return MakeError(status.code(), side, " ", QuotedName(tensor.name), ": ", status);
  }
  return absl::OkStatus();
}

absl::Status CheckOwn(const std::vector<ConnectTensor>& tensors,
                      const std::vector<HalfTensor>& described, const Half& half, int rank,
                      const MemoryRules& rules, bool are_targets, bool may_lack_data) {
  // By kind: local shapes take longer than the rest.
  std::vector<absl::StatusOr<TensorNeeds>> needs(half.kinds.size());
  std::vector<bool> known(half.kinds.size(), false);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ConnectTensor& tensor = tensors[i];
    const TensorKind& kind = half.KindOf(described[i]);
    const auto k = static_cast<size_t>(described[i].kind);
    if (!known[k]) needs[k] = TensorNeeds::Of(tensor.layout, kind.shape, kind.dtype, rank);
    known[k] = true;
    absl::Status status = CheckPlace(tensor.layout, rank);
    if (status.ok()) status = needs[k].status();
    if (status.ok() && !(may_lack_data && needs[k]->IsLacking(tensor.view))) {
      std::vector<BoundView> bound;
      status = needs[k]->Fit(tensor.view, rules, are_targets, &bound);
    }
    if (status.ok()) continue;
    return MakeError(status.code(), are_targets ? "target " : "source ", QuotedName(tensor.name),
                     ": ", status);
  }
  return absl::OkStatus();
}

// The half of `rank`, of `ranks`. InvalidArgument names the tensor: the half is wrong by itself
// (CheckHalf), or a view does not fit. Also, the rank is not in a tensor's mesh, or gives boxes of
// others.
absl::StatusOr<Half> MakeOwnHalf(const ConnectSpec& own, int rank, int ranks,
                                 const MemoryRules& rules) {
  if (absl::Status status = CheckPlaces(own.sources, rank, "source"); !status.ok()) return status;
  if (absl::Status status = CheckPlaces(own.targets, rank, "target"); !status.ok()) return status;
  HalfLayouts layouts;
  HalfBuilder builder;
  std::vector<HalfTensor> sources = Describe(own.sources, &layouts, &builder);
  std::vector<HalfTensor> targets = Describe(own.targets, &layouts, &builder);
  Half half = std::move(*builder.half());
  half.sources = std::move(sources);
  half.targets = std::move(targets);
  half.renames.assign(own.renames.begin(), own.renames.end());
  half.ignore_unused_sources = own.ignore_unused_sources;
  half.priority_class = own.priority_class;
  if (absl::Status status = CheckHalf(half, ranks); !status.ok()) return status;
  absl::Status status = CheckOwn(own.sources, half.sources, half, rank, rules, false, false);
  if (!status.ok()) return status;
  status = CheckOwn(own.targets, half.targets, half, rank, rules, true, own.late_targets);
  if (!status.ok()) return status;
  return half;
}

// Equal bytes are read alike on all ranks.
absl::StatusOr<Match> ReadAndMatch(std::vector<GatheredHalf> gathered, int ranks) {
  std::vector<RankedHalf> halves;
  HalfRoom room;
  for (GatheredHalf& each : gathered) {
    SLUICE_ASSIGN_OR_RETURN(Half half, DecodeHalf(each.bytes, ranks, &room));
    if (absl::Status status = CheckHalf(half, ranks); !status.ok()) return status;
    halves.push_back({std::move(half), std::move(each.ranks)});
    each.bytes = std::string();  // may be long
  }
  return MatchHalves(halves);
}

}  // namespace

absl::Status JoinHalves(Peers* peers, const MemoryRules& rules, const ConnectSpec& own,
                        Match* match, BoundTensors* bound) {
  const absl::StatusOr<Half> half = MakeOwnHalf(own, peers->rank(), peers->size(), rules);
  SLUICE_ASSIGN_OR_RETURN(
      GatheredHalves gathered,
      GatherHalves(peers, half.status(), half.ok() ? EncodeHalf(*half) : std::string()));
  absl::Status status = gathered.loss;
  if (status.ok()) {
    absl::StatusOr<Match> matched = ReadAndMatch(std::move(gathered.halves), peers->size());
    status = matched.status();
    if (matched.ok()) *match = *std::move(matched);
  }
  if (status.ok()) status = bound->Bind(*match, own, peers->rank(), rules);
  return peers->AgreeOn(status, "Connect");
}

}  // namespace sluice
