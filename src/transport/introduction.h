// What ranks tell each other when they first meet, and which of them share a node by it.
#ifndef SLUICE_SRC_TRANSPORT_INTRODUCTION_H_
#define SLUICE_SRC_TRANSPORT_INTRODUCTION_H_

#include <array>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/process_name.h"

namespace sluice {

// Trivially copyable.
struct Introduction {
  int ranks_per_node = 0;           // as MpiFabricOptions
  std::array<char, 256> host = {};  // its name: zero-terminated, zeros behind
  ProcessName process;
};

// The node of each rank, in the order in which nodes first occur. A node is one running system's
// processes under one host name that see each other. The name alone is not enough: hosts that are
// clones share it, and so do containers. Every rank comes to the same from the same.
std::vector<int> NodesOf(absl::Span<const Introduction> introductions);

// The same, or as ranks_per_node says; InvalidArgument if ranks do not say the same, or it is
// negative.
absl::StatusOr<std::vector<int>> PlannedNodesOf(absl::Span<const Introduction> introductions);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_INTRODUCTION_H_
