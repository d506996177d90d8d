// Two transports as one: one for ranks of the own node, one for all others.
#ifndef SLUICE_SRC_TRANSPORT_NODE_TRANSPORT_H_
#define SLUICE_SRC_TRANSPORT_NODE_TRANSPORT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "transport/transport.h"

namespace sluice {

// `within` carries operations with ranks whose node, in `node_of_rank`, is that of `rank`, and
// `between` all others. Both take host memory and rows, and neither works in stream order or in
// groups. It folds, if `within` does, what ranks of the node send.
std::unique_ptr<Transport> MakeNodeTransport(int rank, absl::Span<const int> node_of_rank,
                                             std::unique_ptr<Transport> within,
                                             std::unique_ptr<Transport> between);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_NODE_TRANSPORT_H_
