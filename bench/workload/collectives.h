// Collectives as redistributions: which layouts make them.
#ifndef SLUICE_BENCH_WORKLOAD_COLLECTIVES_H_
#define SLUICE_BENCH_WORKLOAD_COLLECTIVES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/layout.h"

namespace sluice::bench {

enum class Collective : uint8_t {
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kAllToAll,
  kBroadcast,
  kScatter,
  kGather
};

// "all-gather", .. in the order above.
std::vector<std::string> CollectiveNames();
// InvalidArgument lists them.
absl::StatusOr<Collective> ParseCollective(absl::string_view name);

struct CollectiveLayouts {
  Layout src;
  Layout dst;
};

// Over ranks 0 to `ranks` - 1, with rank 0 as the root: of tensors whose first dimension is cut.
// Cuts are even if that is a multiple of `ranks`, or of its square where all send to all.
// InvalidArgument if `ranks` is not 1 to kMaxListedRanks.
absl::StatusOr<CollectiveLayouts> LayoutsOf(Collective collective, int ranks);

// The first one that has these layouts, if any.
std::optional<Collective> CollectiveOf(const Layout& src, const Layout& dst);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_COLLECTIVES_H_
