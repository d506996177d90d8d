// One member of a sync, from joining the world to its last version: epoch after epoch.
#ifndef SLUICE_BENCH_SYNC_MEMBER_H_
#define SLUICE_BENCH_SYNC_MEMBER_H_

#include "absl/status/status.h"
#include "sluice/world.h"
#include "sync/options.h"
#include "sync/report.h"
#include "sync/weights.h"

namespace sluice::bench {

// Joins, and takes part until the last version has come to all members. Errors are World::Join's,
// NextSession's and SyncEpoch::Run's; a lost member is none.
absl::Status RunMember(const SyncOptions& options, const SyncWeights& weights,
                       const WorldOptions& world, SyncReport* report);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_SYNC_MEMBER_H_
