// Choosing between star, chain and tree.
//
// The model is the usual one of a latency and a bandwidth per port (Hockney 1994,
// doi:10.1016/S0167-8191(06)80021-9), with time counted in bytes: a message of s bytes keeps a port
// busy for s + L. A pipeline of m pieces over h hops then takes (m + h - 1) steps.
#include "plan/fanout.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/container/flat_hash_map.h"

namespace sluice {
namespace {

// L: what a port could have sent while a message starts. 5 us at 12 GB/s.
constexpr int64_t kLatencyBytes = 64 << 10;
// Smaller pieces would cost more in messages than they gain by overlap.
constexpr int64_t kPieceBytesMin = 128 << 10;

// Where trees coincide, measured with sluice-sim. With more slots than these, buckets that come
// late leave room for those that come early. A few pieces have to cover the latency of two hops.
// Very long chains fill too late.
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
  const int64_t pieces = (bytes + piece - 1) / piece;
  const int64_t step = (bytes + pieces - 1) / pieces + kLatencyBytes;  // they are cut evenly
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
  const int64_t buckets = (bytes + bucket_bytes - 1) / bucket_bytes;
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

std::vector<int> FanoutOrder(absl::Span<const int> ranks, size_t first,
                             absl::Span<const int> node_of_rank) {
  // Nodes in the order of their first ranks.
  absl::flat_hash_map<int, size_t> index_of_node;
  std::vector<std::vector<int>> by_node;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int rank = ranks[(first + i) % ranks.size()];
    const int node = node_of_rank[static_cast<size_t>(rank)];
    const size_t index = index_of_node.try_emplace(node, by_node.size()).first->second;
    if (index == by_node.size()) by_node.emplace_back();
    by_node[index].push_back(rank);
  }
  std::vector<int> order;
  order.reserve(ranks.size());
  for (const std::vector<int>& of_node : by_node) {
    order.insert(order.end(), of_node.begin(), of_node.end());
  }
  return order;
}

bool OnOneNode(int src, absl::Span<const int> dsts, absl::Span<const int> node_of_rank) {
  const int node = node_of_rank[static_cast<size_t>(src)];
  return std::all_of(dsts.begin(), dsts.end(), [node_of_rank, node](int rank) {
    return node_of_rank[static_cast<size_t>(rank)] == node;
  });
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
