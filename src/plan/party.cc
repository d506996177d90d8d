// Making parties, once for each combination of a source, a need and a size.
#include "plan/party.h"

#include <algorithm>
#include <cstddef>

namespace sluice {

const Party& PairParties::Of(int src, int dst) {
  const Party*& known = by_ranks_[{src, dst}];
  if (known == nullptr) {
    Party& party = parties_.emplace_back();
    party.src = src;
    party.src_needs = src == dst;
    if (src != dst) party.dsts = {dst};
    party.piece_bytes = bucket_bytes_;
    known = &party;
  }
  return *known;
}

Parties::Parties(const TensorTransfer& tensor, const Partition& src, const PlanOptions& options,
                 int layout_pair)
    : src_mesh_(tensor.src.mesh),
      dst_mesh_(tensor.dst.mesh),
      src_(src),
      options_(options),
      layout_pair_(layout_pair),
      element_bytes_(DTypeBytes(IsReduced(tensor) ? tensor.src_dtype : WireDType(tensor))) {}

absl::Span<const int> Parties::ContributorsWith(absl::Span<const int> holders, int owner) const {
  if (!reduces()) return {};
  const size_t count = static_cast<size_t>(src_.contributions());
  const auto found = std::find(holders.begin(), holders.end(), owner);
  const size_t row = static_cast<size_t>(found - holders.begin()) / count;
  return holders.subspan(row * count, count);
}

const Party& Parties::Of(int src, absl::Span<const int> holders, const Need& need,
                         int64_t elements) {
  std::unique_ptr<const Party>& party = parties_[{&need, src, elements}];
  if (party == nullptr) {
    party = std::make_unique<Party>(Make(src, holders, need, elements));
    bytes_ += static_cast<int64_t>(sizeof(Key) + sizeof(Party) + party->dsts.size() * sizeof(int));
  }
  return *party;
}

void Parties::Clear() {
  parties_.clear();
  bytes_ = 0;
}

// Where the tree of a source begins, unless trees coincide: along each mesh dimension the sources
// begin one after the other, so that no destination is the one that passes everything on. The same
// for all tensors, as small ones only join if their trees are equal.
size_t Parties::FirstDst(int src) const {
  int64_t position = *src_mesh_.PositionOf(src);
  // Meshes side by side, as those of pipeline stages are, begin one after the other too.
  int64_t first = src_mesh_.ranks()[0] / static_cast<int64_t>(src_mesh_.ranks().size());
  const absl::Span<const int64_t> sizes = src_mesh_.sizes();
  for (size_t m = sizes.size(); m-- > 0;) {
    first += position % sizes[m];
    position /= sizes[m];
  }
  return static_cast<size_t>(first);
}

Party Parties::Make(int src, absl::Span<const int> holders, const Need& need,
                    int64_t elements) const {
  Party party;
  party.src = src;
  party.piece_bytes = options_.bucket_bytes;
  party.contributors = ContributorsWith(holders, src);
  for (int rank : need.ranks) {
    if (rank == src) {
      party.src_needs = true;
    } else {
      party.dsts.push_back(rank);
    }
  }
  const auto destinations = static_cast<int64_t>(party.dsts.size());
  // A source that is itself a link of others' chains could not send before these have reached it.
  const bool coincides = TreesCoincide(options_.slots, destinations) && !dst_mesh_.PositionOf(src);
  if (!party.dsts.empty()) {
    const size_t first = coincides ? 0 : FirstDst(src) % party.dsts.size();
    const std::vector<int> order = FanoutOrder(party.dsts, first, options_.node_of_rank);
    party.dsts.assign(order.begin(), order.end());
  }
  const int64_t bytes = elements * element_bytes_;
  Fanout fanout = {FanoutShape::kStar, options_.bucket_bytes};
  if (!OnOneNode(src, party.dsts, options_.node_of_rank)) {
    fanout = coincides ? ChooseCoincidingFanout(bytes, destinations, options_.bucket_bytes)
                       : ChooseFanout(bytes, destinations, options_.bucket_bytes);
  }
  party.piece_bytes = fanout.piece_bytes;
  if (reduces()) {
    party.piece_bytes =
        std::min(party.piece_bytes, ReductionPieceBytes(bytes, options_.bucket_bytes));
  }
  party.shape = fanout.shape;
  party.levels = reduces() ? src_.levels() : absl::Span<const Level>();
  party.number =
      1 + static_cast<uint64_t>(layout_pair_) * kFanoutShapes + static_cast<uint64_t>(fanout.shape);
  return party;
}

}  // namespace sluice
