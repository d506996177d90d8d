// The least that any plan of a transfer sends between nodes.
#ifndef SLUICE_BENCH_RESHARD_CROSSING_BOUNDS_H_
#define SLUICE_BENCH_RESHARD_CROSSING_BOUNDS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "sluice/transfer.h"

namespace sluice::bench {

// Only bytes between nodes count. An element that a node's targets need comes to the node once,
// unless a rank of the node has it. It comes in the dtype of the wire, from the ranks that have it,
// each of which sends an equal part. What comes to a node, its ranks receive in equal parts.
//
// Where an element has to be reduced, a node may have all contributions: its ranks hold each of
// them between them. Such a node counts as one that has the element, as it reduces without sending
// anything across. If there is no such node, one node combines. From each other node it gets once,
// in the source dtype, the reduction of what the other node holds. This comes from the other node's
// ranks that hold a contribution, in equal parts. Then the combining node is the one that has the
// element.
//
// Whom it asks: always the node that holds most of the contributions still missing, of equals the
// first. Who combines: the node with which the fewest bytes cross, of equals the first. It may be
// one that needs the element, even if it holds nothing of the element. Then all its ranks send
// equal parts of the result.
struct CrossingBounds {
  int64_t node_bytes = 0;  // all that crosses
  double busiest_src = 0;  // bytes of the rank that sends most across
  double busiest_dst = 0;  // bytes of the rank that receives most from other nodes
};

// `spec` is valid for ranks 0 .. node_of_rank.size() - 1, and has no boxes: of a spec with boxes,
// its CellSpec.
CrossingBounds BoundsOf(const TransferSpec& spec, absl::Span<const int> node_of_rank);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_CROSSING_BOUNDS_H_
