// Spreads bytes that several ranks need from the one that has them: the order, the tree, and the
// size of pieces. Pure functions of sizes and of who shares a node.
#ifndef SLUICE_SRC_PLAN_FANOUT_H_
#define SLUICE_SRC_PLAN_FANOUT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace sluice {

enum class FanoutShape : uint8_t {
  kStar,   // the source sends to each one by one
  kChain,  // each sends on to the next
  kTree,   // each sends on to two
};
inline constexpr int kFanoutShapes = 3;

struct Fanout {
  FanoutShape shape = FanoutShape::kStar;
  int64_t piece_bytes = 0;  // most bytes of one bucket, so that the hops of a pipeline overlap
};

// The shape that brings `bytes` to `destinations` ranks soonest, in buckets of at most
// `bucket_bytes`.
Fanout ChooseFanout(int64_t bytes, int64_t destinations, int64_t bucket_bytes);

// In the following, `destinations` are the nodes that a tree leads to. Within a node there is a
// star of its own.

// True if all sources should visit their destination nodes in the same order. `destinations` is the
// number of nodes, and `slots` how many buckets a rank may hold (0: no limit). In one order, each
// rank gets its buckets in the order of their ids, which is the order in which it admits them.
// Trees that begin at different destinations fill all ports sooner. But where slots are few,
// buckets that come late hold them while others wait (docs/large-meshes.md).
bool TreesCoincide(int64_t slots, int64_t destinations);
// The shape of such a tree for `bytes` of one source.
Fanout ChooseCoincidingFanout(int64_t bytes, int64_t destinations, int64_t bucket_bytes);

// Most bytes of one bucket of a reduction over `bytes`, so that contributions, additions and
// results of different buckets overlap.
int64_t ReductionPieceBytes(int64_t bytes, int64_t bucket_bytes);

// Most bytes of one bucket that a node's first rank hands on to others of the node, so that both
// hops overlap.
int64_t RelayPieceBytes(int64_t bytes, int64_t bucket_bytes);

// Ranks by node: nodes in the order of their first ranks.
class RanksByNode {
 public:
  // `ranks` must outlive this object.
  RanksByNode(absl::Span<const int> ranks, absl::Span<const int> node_of_rank);

  RanksByNode(const RanksByNode&) = delete;
  RanksByNode& operator=(const RanksByNode&) = delete;

  size_t ranks() const { return ranks_.size(); }
  size_t nodes() const { return apart_ ? ranks_.size() : first_.size() - 1; }
  absl::Span<const int> of(size_t node) const { return of(node, node + 1); }
  // The ranks of nodes [begin, end).
  absl::Span<const int> of(size_t begin, size_t end) const {
    return ranks_.subspan(First(begin), First(end) - First(begin));
  }
  // The most that one of the nodes [begin, end) has.
  size_t largest(size_t begin, size_t end) const;

 private:
  size_t First(size_t node) const { return apart_ ? node : first_[node]; }

  absl::Span<const int> ranks_;
  bool apart_ = false;         // each has a node of its own; there are many such lists
  std::vector<size_t> first_;  // unless apart: of each node, in ranks_; and the end
  std::vector<int> in_order_;  // unless apart: the ranks
};

inline bool SharesNode(int a, int b, absl::Span<const int> node_of_rank) {
  return node_of_rank[static_cast<size_t>(a)] == node_of_rank[static_cast<size_t>(b)];
}

// A place in a tree.
struct FanoutPlace {
  int rank = -1;
  int32_t parent = 0;  // 0: the source; n: the n-th place

  friend bool operator==(const FanoutPlace&, const FanoutPlace&) = default;
};

// The tree that brings bytes from `src` to the ranks of `nodes`, without `src`. Each node but the
// source's gets the bytes once, through one of its ranks, which hands them on to the others. Nodes
// follow one another in `shape`, as in the list, from number `first_node` on and round. A node's
// bytes come to rank number `stripe` of its list, counted round. The ranks of the source's own node
// come last and get the bytes from the source.
std::vector<FanoutPlace> FanoutTree(int src, const RanksByNode& nodes, FanoutShape shape,
                                    size_t first_node, size_t stripe,
                                    absl::Span<const int> node_of_rank);

// Nodes that a tree has to reach. In one node a star is best: receivers copy, so the source keeps
// no port busy.
struct FanoutNodes {
  int64_t others = 0;   // nodes that are not the source's
  bool relays = false;  // one of these has several ranks
};
FanoutNodes CountNodes(int src, const RanksByNode& nodes, absl::Span<const int> node_of_rank);

// The parent of place `place` (1, 2, ..); the source is at place 0.
int32_t FanoutParent(FanoutShape shape, int32_t place);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_FANOUT_H_
