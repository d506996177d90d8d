// Making parties, once for each combination of a source, a need and a size.
#include "plan/party.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace sluice {

bool Party::OwnerContributes() const {
  return contributors.empty() ||
         std::find(contributors.begin(), contributors.end(), src) != contributors.end();
}

Role RoleInReduction(const Party& party, int rank) {
  if (rank == party.src) return Role::kOwner;
  return Adds(party.steps, rank) ? Role::kOwner | Role::kContributor : Role::kContributor;
}

const Party& PairParties::Of(int src, int dst) {
  const Party*& known = by_ranks_[{src, dst}];
  if (known == nullptr) {
    Party& party = parties_.emplace_back();
    party.src = src;
    party.src_needs = src == dst;
    if (src != dst) party.dsts = {{dst, 0}};
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

absl::Span<const int> Parties::ContributorsTo(const Need& need, absl::Span<const int> holders,
                                              int owner) const {
  if (!reduces()) return {};
  const size_t count = static_cast<size_t>(src_.contributions());
  if (need.replica >= 0) return holders.subspan(static_cast<size_t>(need.replica) * count, count);
  const auto found = std::find(holders.begin(), holders.end(), owner);
  const size_t row = static_cast<size_t>(found - holders.begin()) / count;
  return holders.subspan(row * count, count);
}

const Party& Parties::Of(int src, absl::Span<const int> holders, const Need& need,
                         const Share& share) {
  std::unique_ptr<const Party>& party =
      parties_[{&need, src, share.stripe, share.end - share.begin}];
  if (party == nullptr) {
    party = std::make_unique<Party>(Make(src, holders, need, share));
    bytes_ += static_cast<int64_t>(sizeof(Key) + sizeof(Party) +
                                   party->dsts.size() * sizeof(FanoutPlace));
  }
  return *party;
}

void Parties::Clear() {
  parties_.clear();
  bytes_ = 0;
}

// The destination at which the tree of a source begins. Along each mesh dimension the sources begin
// one after the other, so that no destination is the one that passes everything on. The same for
// all tensors, as small ones only join if their trees are equal.
size_t Parties::FirstDst(int src) const {
  const std::optional<int64_t> as_source = src_mesh_.PositionOf(src);
  if (!as_source) return 0;  // an owner, which passes on within its node
  int64_t position = *as_source;
  // Meshes side by side, as those of pipeline stages are, begin one after the other too.
  int64_t first = src_mesh_.ranks()[0] / static_cast<int64_t>(src_mesh_.ranks().size());
  const absl::Span<const int64_t> sizes = src_mesh_.sizes();
  for (size_t m = sizes.size(); m-- > 0;) {
    first += position % sizes[m];
    position /= sizes[m];
  }
  return static_cast<size_t>(first);
}

// Trees of one source and one `shape` differ in their first rank. Trees that coincide take the
// nodes in the same order; a node's port would be idle if all took its first rank.
std::vector<FanoutPlace> Parties::TreeOf(int src, const RanksByNode& nodes, int32_t stripe,
                                         FanoutShape shape, bool coincides) const {
  const auto tree = [&](size_t first_node, size_t first_rank) {
    return FanoutTree(src, nodes, shape, first_node, first_rank, options_.node_of_rank);
  };
  const size_t first = FirstDst(src);
  if (stripe >= 0) {
    // The stripes of a source begin at different ranks of one node, one of those with most ranks.
    const size_t most = nodes.largest(0, nodes.nodes());
    std::vector<size_t> largest;
    for (size_t i = 0; i < nodes.nodes(); ++i) {
      if (nodes.of(i).size() == most) largest.push_back(i);
    }
    return tree(largest[coincides ? 0 : first % largest.size()], static_cast<size_t>(stripe));
  }
  if (coincides) return tree(0, first % nodes.of(0).size());
  // The ranks of the source's own node, which an owner has among its destinations, come last.
  const auto length = [&](size_t node) {
    const absl::Span<const int> ranks = nodes.of(node);
    return SharesNode(src, ranks[0], options_.node_of_rank) ? 0 : ranks.size();
  };
  size_t others = 0;
  for (size_t n = 0; n < nodes.nodes(); ++n) others += length(n);
  if (others == 0) return tree(0, first % nodes.ranks());
  size_t place = first % others;
  size_t node = 0;
  while (place >= length(node)) place -= length(node++);
  return tree(node, place);
}

Party Parties::Make(int src, absl::Span<const int> holders, const Need& need,
                    const Share& share) const {
  Party party;
  party.src = src;
  party.piece_bytes = options_.bucket_bytes;
  party.contributors = ContributorsTo(need, holders, src);
  std::vector<int> dsts;
  for (int rank : need.ranks) {
    if (rank == src) {
      party.src_needs = true;
    } else {
      dsts.push_back(rank);
    }
  }
  const RanksByNode nodes(dsts, options_.node_of_rank);
  const FanoutNodes count = CountNodes(src, nodes, options_.node_of_rank);
  // A source that is itself a link of others' chains could not send before these have reached it.
  const bool coincides = TreesCoincide(options_.slots, count.others) && !dst_mesh_.PositionOf(src);
  const int64_t bytes = (share.end - share.begin) * element_bytes_;
  Fanout fanout = {FanoutShape::kStar, options_.bucket_bytes};
  if (count.others > 0) {
    fanout = coincides ? ChooseCoincidingFanout(bytes, count.others, options_.bucket_bytes)
                       : ChooseFanout(bytes, count.others, options_.bucket_bytes);
  }
  party.piece_bytes = fanout.piece_bytes;
  if (count.relays) {
    party.piece_bytes = std::min(party.piece_bytes, RelayPieceBytes(bytes, options_.bucket_bytes));
  }
  // Targets that reduce for their node have no hops that could overlap.
  if (reduces() && need.replica < 0) {
    party.piece_bytes =
        std::min(party.piece_bytes, ReductionPieceBytes(bytes, options_.bucket_bytes));
  }
  if (!dsts.empty()) {
    const std::vector<FanoutPlace> tree = TreeOf(src, nodes, share.stripe, fanout.shape, coincides);
    party.dsts.assign(tree.begin(), tree.end());
  }
  party.levels = reduces() ? src_.levels() : absl::Span<const Level>();
  if (need.gathers) {
    party.steps = GatherByNode(src, party.contributors, options_.node_of_rank);
  } else if (reduces()) {
    party.steps = GatherDirectly(src);
  }
  party.number =
      1 + static_cast<uint64_t>(layout_pair_) * kFanoutShapes + static_cast<uint64_t>(fanout.shape);
  return party;
}

}  // namespace sluice
