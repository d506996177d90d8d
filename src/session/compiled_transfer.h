// A transfer that a session has planned, and the memory bound to its next run.
#ifndef SLUICE_SRC_SESSION_COMPILED_TRANSFER_H_
#define SLUICE_SRC_SESSION_COMPILED_TRANSFER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plan/plan.h"
#include "session/views.h"
#include "sluice/session.h"

namespace sluice {

class CompiledTransfer : public Transfer {
 public:
  // Plans `rank`'s part of a valid spec, whose HashPlan().all is `plan_hash`.
  static absl::StatusOr<std::unique_ptr<CompiledTransfer>> Make(const TransferSpec& spec,
                                                                const PlanOptions& options,
                                                                int rank, uint64_t plan_hash);

  const TransferSpec& spec() const override { return spec_; }
  const TransferStats& stats() const override { return stats_; }
  const Plan& plan() const { return plan_; }

  // Checks views and keeps them for the runs to come. Allocates only when they differ from the
  // ones before.
  absl::Status Bind(absl::Span<const TensorView> src, absl::Span<const TensorView> dst);

  // The views last bound, one per tensor.
  absl::Span<const BoundView> src() const { return src_; }
  absl::Span<const BoundView> dst() const { return dst_; }

  // Largest bucket of this rank in bytes.
  int64_t bucket_bytes_max() const { return bucket_bytes_max_; }

  bool agreed = false;  // all ranks have found their views good once
  int number = 0;       // of the session's transfers

 private:
  CompiledTransfer() = default;
  absl::Status BindSide(absl::Span<const TensorView> views, bool is_dst);
  void FillStats(int rank);

  TransferSpec spec_;
  Plan plan_;
  TransferStats stats_;
  int64_t bucket_bytes_max_ = 0;
  std::vector<ViewNeed> src_needs_;
  std::vector<ViewNeed> dst_needs_;
  std::vector<BoundView> src_;
  std::vector<BoundView> dst_;
  std::vector<BoundView> candidate_;  // scratch for Bind
  std::vector<absl::string_view> names_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_COMPILED_TRANSFER_H_
