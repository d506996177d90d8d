// Who gives the current version to those servers that lack it: servers that hold it. Every member
// works it out alone, and comes to the same.
#ifndef SLUICE_BENCH_SYNC_CATCH_UP_PLAN_H_
#define SLUICE_BENCH_SYNC_CATCH_UP_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sync/holding.h"
#include "sync/weights.h"

namespace sluice::bench {

// What a server holds whole.
struct Held {
  int64_t version = 0;  // 0: nothing
  Place place;
};

struct CatchUpPlan {
  std::vector<bool> is_target;   // by server, in the order of ranks
  Layouts sources;               // on servers that hold the version, where they have it
  std::vector<Layouts> targets;  // on servers that lack it; an empty mesh where a side has none
};

// For the servers of an epoch, in the order of ranks. A server lacks `version` if it holds an older
// one, or holds it where it does not belong any more. Nothing: nobody lacks it, or those that hold
// it do not have all of it together. Then the next version brings everything.
absl::StatusOr<std::optional<CatchUpPlan>> PlanCatchUp(const SyncWeights& weights, int trainers,
                                                       absl::Span<const Held> held,
                                                       int64_t version);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_SYNC_CATCH_UP_PLAN_H_
