// Choosing between star, chain and tree.
//
// The model is the usual one of a latency and a bandwidth per port (Hockney 1994,
// doi:10.1016/S0167-8191(06)80021-9). Time is counted in bytes. A message of s bytes keeps a port
// busy for s + L. A pipeline of m pieces over h hops then takes (m + h - 1) steps.
#include "plan/fanout.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "tensor/round.h"

namespace sluice {
namespace {

// L: what a port could have sent while a message starts. 5 us at 12 GB/s.
constexpr int64_t kLatencyBytes = 64 << 10;
// Smaller pieces would cost more in messages than they gain by overlap.
constexpr int64_t kPieceBytesMin = 128 << 10;

// Limits for trees that coincide, measured with sluice-sim. With more slots than these, buckets
// that come late leave room for those that come early. A few pieces have to cover the latency of
// two hops. Very long chains fill too late.
constexpr int64_t kSlotsPerDestination = 2;
constexpr int64_t kCoincidingPieceBytesMin = 256 << 10;
constexpr int64_t kCoincidingChainMax = 32;

struct Pipeline {
  int64_t piece_bytes;
  int64_t cost_bytes;
};

// `sends`: how often each rank sends what it has.
Pipeline BestPipeline(int64_t bytes, int64_t hops, int64_t sends, int64_t bucket_bytes) {
  // d/ds of (bytes / s + hops - 1) * (s + L) is zero here.
  const double best = std::sqrt(static_cast<double>(bytes) * kLatencyBytes /
                                static_cast<double>(std::max<int64_t>(1, hops - 1)));
  const int64_t piece =
      std::min(bucket_bytes, std::max(kPieceBytesMin, static_cast<int64_t>(best) / 4096 * 4096));
  const int64_t pieces = CeilDiv(bytes, piece);
  const int64_t step = CeilDiv(bytes, pieces) + kLatencyBytes;  // they are cut evenly
  return {piece, sends * (pieces + hops - 1) * step};
}

int64_t TreeDepth(int64_t destinations) {
  int64_t depth = 0;
  while ((int64_t{2} << depth) - 1 < destinations + 1) ++depth;
  return depth;
}

Pipeline BestChain(int64_t bytes, int64_t destinations, int64_t bucket_bytes) {
  return BestPipeline(bytes, destinations, 1, bucket_bytes);
}

Pipeline BestTree(int64_t bytes, int64_t destinations, int64_t bucket_bytes) {
  return BestPipeline(bytes, TreeDepth(destinations), 2, bucket_bytes);
}

}  // namespace

Fanout ChooseFanout(int64_t bytes, int64_t destinations, int64_t bucket_bytes) {
  if (destinations <= 1) return {FanoutShape::kStar, bucket_bytes};
  Fanout best = {FanoutShape::kStar, bucket_bytes};
  const int64_t buckets = CeilDiv(bytes, bucket_bytes);
  int64_t best_cost = destinations * (bytes + buckets * kLatencyBytes);
  const Pipeline chain = BestChain(bytes, destinations, bucket_bytes);
  if (chain.cost_bytes < best_cost) {
    best = {FanoutShape::kChain, chain.piece_bytes};
    best_cost = chain.cost_bytes;
  }
  const Pipeline tree = BestTree(bytes, destinations, bucket_bytes);
  if (tree.cost_bytes < best_cost) best = {FanoutShape::kTree, tree.piece_bytes};
  return best;
}

bool TreesCoincide(int64_t slots, int64_t destinations) {
  return destinations > 1 && slots > 0 && slots < kSlotsPerDestination * destinations;
}

Fanout ChooseCoincidingFanout(int64_t bytes, int64_t destinations, int64_t bucket_bytes) {
  const bool chain = destinations <= kCoincidingChainMax;
  const Pipeline best = chain ? BestChain(bytes, destinations, bucket_bytes)
                              : BestTree(bytes, destinations, bucket_bytes);
  return {chain ? FanoutShape::kChain : FanoutShape::kTree,
          std::min(bucket_bytes, std::max(best.piece_bytes, kCoincidingPieceBytesMin))};
}

int64_t ReductionPieceBytes(int64_t bytes, int64_t bucket_bytes) {
  constexpr int64_t kHops = 3;  // to the owner, into the accumulator, to a destination
  return BestPipeline(bytes, kHops, 1, bucket_bytes).piece_bytes;
}

int64_t RelayPieceBytes(int64_t bytes, int64_t bucket_bytes) {
  constexpr int64_t kHops = 2;  // to the node, and inside it
  return BestPipeline(bytes, kHops, 1, bucket_bytes).piece_bytes;
}

RanksByNode::RanksByNode(absl::Span<const int> ranks, absl::Span<const int> node_of_rank)
    : ranks_(ranks) {
  const auto node_of = [node_of_rank](int rank) { return node_of_rank[static_cast<size_t>(rank)]; };
  const auto after = [node_of](int a, int b) { return node_of(b) <= node_of(a); };
  apart_ = std::adjacent_find(ranks.begin(), ranks.end(), after) == ranks.end();
  if (apart_) return;
  absl::flat_hash_map<int, size_t> index_of_node;
  for (const int rank : ranks) index_of_node.try_emplace(node_of(rank), index_of_node.size());
  std::vector<size_t> next(index_of_node.size() + 1);
  for (const int rank : ranks) ++next[index_of_node.at(node_of(rank)) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  first_ = next;
  in_order_.resize(ranks.size());
  for (const int rank : ranks) in_order_[next[index_of_node.at(node_of(rank))]++] = rank;
  ranks_ = in_order_;
}

size_t RanksByNode::largest(size_t begin, size_t end) const {
  if (apart_) return begin < end ? 1 : 0;
  size_t most = 0;
  for (size_t node = begin; node < end; ++node) most = std::max(most, of(node).size());
  return most;
}

std::vector<FanoutPlace> FanoutTree(int src, const RanksByNode& nodes, FanoutShape shape,
                                    size_t first_node, size_t stripe,
                                    absl::Span<const int> node_of_rank) {
  std::vector<FanoutPlace> places;
  places.reserve(nodes.ranks());
  std::vector<int32_t> heads = {0};  // places of the nodes' first ranks, after the source
  const auto append = [&](absl::Span<const int> ranks, bool relayed) {
    const int32_t head = static_cast<int32_t>(places.size()) + 1;
    for (size_t i = 0; i < ranks.size(); ++i) {
      places.push_back({ranks[(stripe + i) % ranks.size()], relayed ? head : 0});
    }
    if (!relayed) return;
    const int32_t above = FanoutParent(shape, static_cast<int32_t>(heads.size()));
    places[static_cast<size_t>(head - 1)].parent = heads[static_cast<size_t>(above)];
    heads.push_back(head);
  };
  absl::Span<const int> own;
  for (size_t i = 0; i < nodes.nodes(); ++i) {
    const absl::Span<const int> ranks = nodes.of((first_node + i) % nodes.nodes());
    if (SharesNode(src, ranks[0], node_of_rank)) {
      own = ranks;
    } else {
      append(ranks, true);
    }
  }
  append(own, false);
  return places;
}

FanoutNodes CountNodes(int src, const RanksByNode& nodes, absl::Span<const int> node_of_rank) {
  FanoutNodes counted;
  for (size_t node = 0; node < nodes.nodes(); ++node) {
    const absl::Span<const int> ranks = nodes.of(node);
    if (SharesNode(src, ranks[0], node_of_rank)) continue;
    ++counted.others;
    counted.relays = counted.relays || ranks.size() > 1;
  }
  return counted;
}

int32_t FanoutParent(FanoutShape shape, int32_t place) {
  switch (shape) {
    case FanoutShape::kStar:
      return 0;
    case FanoutShape::kChain:
      return place - 1;
    case FanoutShape::kTree:
      return (place - 1) / 2;
  }
  return 0;
}

}  // namespace sluice
