// All ranks of a job in one process: a fabric and a transport through memory, for tests, examples
// and simulations. Behaves like the MPI ones: a send ends only when its receive has been started.
#ifndef SLUICE_SRC_TRANSPORT_LOOPBACK_LOOPBACK_H_
#define SLUICE_SRC_TRANSPORT_LOOPBACK_LOOPBACK_H_

#include <memory>
#include <vector>

#include "sluice/fabric.h"
#include "transport/loopback/loopback_messages.h"

namespace sluice {

// One fabric per rank, all connected. `node_of_rank` as in Fabric. Each fabric and each
// transport may be used by a thread of its own; the last one destroyed frees what they share.
std::vector<std::unique_ptr<Fabric>> MakeLoopbackFabrics(
    const std::vector<int>& node_of_rank, LoopbackSends sends = LoopbackSends::kMeetTheirReceives);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_LOOPBACK_LOOPBACK_H_
