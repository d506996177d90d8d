// How bytes that several ranks need spread from the one that has them: in what order, along which
// tree, and in pieces of what size. Pure functions of sizes and of who shares a node.
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

// True if the trees of all sources to so many ranks are to be one and the same, where a rank holds
// at most `slots` buckets (0: no limit). Each rank then gets its buckets in the order of their ids,
// in which it lets them in. Trees that begin at different destinations fill all ports sooner, but
// few slots are then held by buckets that come late, while others wait (docs/large-meshes.md).
bool TreesCoincide(int64_t slots, int64_t destinations);
// The shape of such a tree for `bytes` of one source.
Fanout ChooseCoincidingFanout(int64_t bytes, int64_t destinations, int64_t bucket_bytes);

// Most bytes of one bucket of a reduction over `bytes`, so that contributions, additions and
// results of different buckets overlap.
int64_t ReductionPieceBytes(int64_t bytes, int64_t bucket_bytes);

// `ranks` in the order in which they stand in the tree: from number `first` on and round, those of
// one node together.
std::vector<int> FanoutOrder(absl::Span<const int> ranks, size_t first,
                             absl::Span<const int> node_of_rank);

// True if `src` and all of `dsts` share a node. Then a star is best: there is no port that its
// source would keep busy, as whoever receives copies.
bool OnOneNode(int src, absl::Span<const int> dsts, absl::Span<const int> node_of_rank);

// The parent of place `place` (1, 2, ..); the source is at place 0.
int32_t FanoutParent(FanoutShape shape, int32_t place);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_FANOUT_H_
