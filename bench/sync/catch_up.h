// Servers that lack the current version get it from servers that hold it. Every member works out
// alone who gives what, and comes to the same.
#ifndef SLUICE_BENCH_SYNC_CATCH_UP_H_
#define SLUICE_BENCH_SYNC_CATCH_UP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sluice/connect.h"
#include "sluice/session.h"
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

// A version on its way to servers that lack it, beside the versions that come meanwhile.
//
// Thread: the session's.
class CatchUp {
 public:
  // Collective. Begins to move `version`. `from`: what this server holds; null: nothing. `to`:
  // where it is to go; null: this member lacks nothing. Errors are Connect's.
  static absl::StatusOr<std::unique_ptr<CatchUp>> Start(Session* session, const CatchUpPlan& plan,
                                                        int64_t version,
                                                        std::shared_ptr<Holding> from,
                                                        std::shared_ptr<Holding> to);

  // Takes a short step: sees whether it has come, or verifies one tensor, if `may_verify`. That
  // takes the time of a core, which whoever is measuring may want.
  absl::Status Step(bool may_verify);
  // Whether this member's part has come to its end, and is verified.
  bool is_over() const { return is_over_; }

  int64_t version() const { return version_; }
  int64_t sent_bytes() const { return connection_->transfer()->stats().sent_bytes; }
  // Where this member lacked the version, and it is over: how long that took from Start on, how
  // many elements are wrong, and the memory. Otherwise 0 and null.
  int64_t time_us() const { return is_over_ && to_ != nullptr ? time_us_ : 0; }
  int64_t wrong() const { return is_over_ ? wrong_ : 0; }
  const std::shared_ptr<Holding>& to() const { return to_; }

 private:
  CatchUp(int64_t version, std::shared_ptr<Holding> from, std::shared_ptr<Holding> to)
      : version_(version), from_(std::move(from)), to_(std::move(to)) {}

  const int64_t version_;
  std::shared_ptr<Holding> from_;  // its sources, while it is under way
  const std::shared_ptr<Holding> to_;
  std::unique_ptr<Connection> connection_;
  Run run_;
  int64_t start_ns_ = 0;
  int64_t time_us_ = 0;
  int64_t wrong_ = 0;
  size_t verified_ = 0;  // tensors
  bool has_come_ = false;
  bool is_over_ = false;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_SYNC_CATCH_UP_H_
