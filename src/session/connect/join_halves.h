// Joins the halves of all ranks into one transfer: the collective part of Connect before Compile.
#ifndef SLUICE_SRC_SESSION_CONNECT_JOIN_HALVES_H_
#define SLUICE_SRC_SESSION_CONNECT_JOIN_HALVES_H_

#include "absl/status/status.h"
#include "plan/connect/match.h"
#include "session/base/memory_rules.h"
#include "session/connect/bound_tensors.h"
#include "session/peers/peers.h"
#include "sluice/connect.h"

namespace sluice {

// Collective; waits for the other ranks. OK on all ranks or on none: then `match` is equal on all
// of them, and `bound` has this rank's views for it. Errors are those of Connect.
absl::Status JoinHalves(Peers* peers, const MemoryRules& rules, const ConnectSpec& own,
                        Match* match, BoundTensors* bound);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CONNECT_JOIN_HALVES_H_
