// Two transports as one: one for ranks of the own node, one for all others.
#ifndef SLUICE_SRC_TRANSPORT_NODE_TRANSPORT_H_
#define SLUICE_SRC_TRANSPORT_NODE_TRANSPORT_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "sluice/transport.h"

namespace sluice {

// Carries what it can, and hands the rest over to messages. Operations that have met each other
// leave it on both sides, in one order for any two ranks.
class NearTransport : public Transport {
 public:
  using Transport::Transport;

  // Whether Start, Poll or Part may still hand over operations that are outstanding.
  virtual bool may_hand_over() const = 0;
  // Gives the operations handed over since the last call, in order; they give no event any more.
  virtual void TakeHandedOver(std::vector<TransportOp>* ops) = 0;
};

// `within` carries operations with ranks whose node, in `node_of_rank`, is that of `rank`.
// `between` carries all others, and what `within` hands over. Both take host memory and rows, and
// neither works in stream order or in groups. It folds, if `within` does, what ranks of the node
// send.
std::unique_ptr<Transport> MakeNodeTransport(int rank, absl::Span<const int> node_of_rank,
                                             std::unique_ptr<NearTransport> within,
                                             std::unique_ptr<Transport> between);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_NODE_TRANSPORT_H_
