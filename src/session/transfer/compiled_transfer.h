// A transfer that a session has planned: what all its runs share.
#ifndef SLUICE_SRC_SESSION_TRANSFER_COMPILED_TRANSFER_H_
#define SLUICE_SRC_SESSION_TRANSFER_COMPILED_TRANSFER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "device/stores.h"
#include "plan/box_cells.h"
#include "plan/groups.h"
#include "plan/plan.h"
#include "session/base/memory_rules.h"
#include "session/base/views.h"
#include "session/transfer/tensor_parts.h"
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

  // The tensors that are planned: those of spec(), or parts of them. "Tensors" below means these.
  const TransferSpec& planned() const { return cells_ == nullptr ? spec_ : cells_->spec; }
  const TensorParts& parts() const { return *parts_; }
  // Names of the tensors of spec() that each of them belongs to.
  absl::Span<const absl::string_view> names() const { return names_; }

  // A window of the spec that has a tensor, ascending: its buckets are [first_bucket, end_bucket).
  struct Window {
    int number = 0;
    size_t first_bucket = 0;
    size_t end_bucket = 0;
    std::vector<int> tensors;
  };
  absl::Span<const Window> windows() const { return windows_; }
  // Which of them each tensor is in.
  absl::Span<const size_t> windows_of_tensors() const { return windows_of_tensors_; }
  // How many chunks of each tensor this rank's buckets have.
  absl::Span<const int64_t> tensor_chunks() const { return tensor_chunks_; }

  // Whether messages of this rank may be sent from the tensor's source, or its destination.
  bool SendsSrc(size_t tensor) const { return sends_src_[tensor]; }
  bool SendsDst(size_t tensor) const { return sends_dst_[tensor]; }

  // The largest slot that a bucket of this rank needs, in bytes.
  int64_t slot_bytes() const { return slot_bytes_; }
  // The most operations that one bucket of this rank has under way at once, and the most
  // contributions of one fold. A fold of n contributions has n + 1 operations.
  int operations_max() const { return operations_max_; }
  int fold_sources_max() const { return fold_sources_max_; }

  // How a run's bytes are stored in destination memory: many are not read before caches overflow.
  WriteHint stores() const { return stores_; }

  bool agreed = false;               // all ranks have found their views good once
  int number = 0;                    // of the session's transfers
  std::vector<int> engine_channels;  // by the plan's channels
  std::vector<int32_t> trace_names;  // of the tensors, in the session's trace; empty: there is none
  int lane = 0;                      // of the engine
  MemoryRules memory;
  GroupCut cut;  // where the transport starts operations in groups

 private:
  CompiledTransfer() = default;
  void FillStats(int rank);
  void ChooseStores(int rank, absl::Span<const int> node_of_rank);
  void FillWindows();
  void FindSent();

  TransferSpec spec_;
  std::unique_ptr<const CellSpec> cells_;  // null: tensors are planned as they are
  std::unique_ptr<const TensorParts> parts_;
  Plan plan_;
  TransferStats stats_;
  int64_t slot_bytes_ = 0;
  int operations_max_ = 0;
  int fold_sources_max_ = 0;
  WriteHint stores_ = WriteHint::kPlain;
  std::vector<Window> windows_;
  std::vector<size_t> windows_of_tensors_;
  std::vector<int64_t> tensor_chunks_;
  std::vector<bool> sends_src_;
  std::vector<bool> sends_dst_;
  std::vector<absl::string_view> names_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_COMPILED_TRANSFER_H_
