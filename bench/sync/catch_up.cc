// One connection and its one run.
#include "sync/catch_up.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "sluice/transfer.h"

namespace sluice::bench {

absl::StatusOr<std::unique_ptr<CatchUp>> CatchUp::Start(Session* session, const CatchUpPlan& plan,
                                                        int64_t version,
                                                        std::shared_ptr<Holding> from,
                                                        std::shared_ptr<Holding> to) {
  ConnectSpec own;
  if (from != nullptr) from->Give(plan.sources, session->rank(), &own.sources);
  for (const Layouts& side : plan.targets) {
    if (to != nullptr) to->Give(side, session->rank(), &own.targets);
  }
  own.ignore_unused_sources = true;
  // Whatever runs beside it comes first.
  own.priority_class = kPriorityClasses - 1;
  std::unique_ptr<CatchUp> catch_up(new CatchUp(version, std::move(from), std::move(to)));
  auto connection = Connect(session, own);
  if (!connection.ok()) return connection.status();
  catch_up->connection_ = *std::move(connection);
  catch_up->start_ns_ = MonotonicNs();
  auto run = catch_up->connection_->Start({.version = version});
  if (!run.ok()) return run.status();
  catch_up->run_ = *run;
  return catch_up;
}

absl::Status CatchUp::Step(bool may_verify) {
  if (is_over_) return absl::OkStatus();
  if (!has_come_) {
    if (!run_.IsDone()) return absl::OkStatus();
    if (absl::Status status = run_.Wait(); !status.ok()) return status;
    constexpr int64_t kNsOfUs = 1000;
    time_us_ = std::max<int64_t>(1, (MonotonicNs() - start_ns_) / kNsOfUs);
    has_come_ = true;
    from_ = nullptr;
  } else if (may_verify) {
    wrong_ += to_->CountWrong(verified_++, version_);
  }
  is_over_ = to_ == nullptr || verified_ == to_->tensors();
  if (is_over_ && to_ != nullptr) to_->set_version(version_);
  return absl::OkStatus();
}

}  // namespace sluice::bench
