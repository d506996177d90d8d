// A version on its way to servers that lack it, beside the versions that come meanwhile.
#ifndef SLUICE_BENCH_SYNC_CATCH_UP_H_
#define SLUICE_BENCH_SYNC_CATCH_UP_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/connect.h"
#include "sluice/session.h"
#include "sync/catch_up_plan.h"
#include "sync/holding.h"

namespace sluice::bench {

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
