// Knobs that are automatic: what suits a transfer, as a function of data that all ranks have.
//
// Two costs pull in opposite directions. A bucket costs each of its members some microseconds
// whatever its size, so buckets should be large. Staged bytes are packed into a slot, sent from
// there and unpacked. Each of these steps is fastest when it finds the bytes in the cache, and some
// buckets should be packed while others cross. So where bytes are staged, buckets should be small
// beside the cache, and beside all that a rank gets. The measurements are in
// docs/notes.md.
#ifndef SLUICE_SRC_PLAN_AUTO_KNOBS_H_
#define SLUICE_SRC_PLAN_AUTO_KNOBS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "plan/plan.h"
#include "sluice/transfer.h"

namespace sluice {

struct Knobs {
  int64_t bucket_bytes = 0;
  int max_in_flight = 0;

  friend bool operator==(const Knobs&, const Knobs&) = default;
};

// The average load of a rank that receives a transfer. Estimates from shapes and layouts, without
// planning.
struct TransferLoad {
  int64_t rank_bytes = 0;    // of its tensors on the wire, in one window
  int64_t staged_bytes = 0;  // of these, what is packed or reduced on its way
};

// `spec`, which ValidateSpec has accepted, between ranks on these nodes.
TransferLoad LoadOf(const TransferSpec& spec, absl::Span<const int> node_of_rank);

// How many buckets of a channel are in flight, whatever the load. Buckets have `bucket_bytes` (0:
// automatic) and slots `slot_bytes`. Large buckets: two, so that one is filled or emptied while the
// other crosses. Small buckets: more. A bucket ends at its sender only when it has met its receive,
// which takes a round trip, and the others cross meanwhile.
int AutoMaxInFlight(int64_t bucket_bytes, int64_t slot_bytes);

// Chooses knobs for `load` with slots of `slot_bytes` and `cache_bytes` of cache for each rank (0:
// bytes pass no cache, as on devices). The bucket size is at most slot_bytes, and at least the
// smaller one of slot_bytes and kAutoBucketBytesMin. It never falls when rank_bytes or the cache
// grows.
inline constexpr int64_t kAutoBucketBytesMin = int64_t{256} << 10;
Knobs ChooseKnobs(const TransferLoad& load, int64_t slot_bytes, int64_t cache_bytes);

// `options` with knobs in place of zeros. Equal on all ranks if the arguments are.
PlanOptions WithKnobs(const TransferSpec& spec, const PlanOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_AUTO_KNOBS_H_
