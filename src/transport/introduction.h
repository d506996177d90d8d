// The introduction of ranks that first meet. From it follows which of them share a node.
#ifndef SLUICE_SRC_TRANSPORT_INTRODUCTION_H_
#define SLUICE_SRC_TRANSPORT_INTRODUCTION_H_

#include <array>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "transport/process_name.h"

namespace sluice {

// Travels as its bytes.
struct Introduction {
  absl::optional<int> ranks_per_node;  // as MpiFabricOptions
  std::array<char, 256> host = {};     // its name: zero-terminated, zeros behind
  ProcessName process;
};
static_assert(std::is_trivially_copyable_v<Introduction>);

// The node of each rank, in the order in which nodes first occur. A node is one running system's
// processes under one host name that see each other. The name alone is not enough: hosts that are
// clones share it, and so do containers. Every rank comes to the same from the same.
std::vector<int> NodesOf(absl::Span<const Introduction> introductions);

// The same, or as ranks_per_node says; InvalidArgument if ranks do not say the same, or it is
// below 1.
absl::StatusOr<std::vector<int>> PlannedNodesOf(absl::Span<const Introduction> introductions);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_INTRODUCTION_H_
