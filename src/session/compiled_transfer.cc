// Planning a transfer and binding memory to it.
#include "session/compiled_transfer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/clock.h"

namespace sluice {

absl::StatusOr<std::unique_ptr<CompiledTransfer>> CompiledTransfer::Make(const TransferSpec& spec,
                                                                         const PlanOptions& options,
                                                                         int rank,
                                                                         uint64_t plan_hash) {
  const int64_t begin_ns = MonotonicNs();
  absl::StatusOr<Plan> plan = MakePlan(spec, options, rank);
  if (!plan.ok()) return plan.status();
  std::unique_ptr<CompiledTransfer> transfer(new CompiledTransfer());
  transfer->stats_.plan_time = absl::Nanoseconds(MonotonicNs() - begin_ns);
  transfer->spec_ = spec;
  transfer->plan_ = *std::move(plan);
  transfer->stats_.plan_hash = plan_hash;
  transfer->FillStats(rank);
  for (const TensorTransfer& tensor : transfer->spec_.tensors) {
    absl::StatusOr<std::vector<int64_t>> src = LocalShape(tensor.src, tensor.shape, rank);
    absl::StatusOr<std::vector<int64_t>> dst = LocalShape(tensor.dst, tensor.shape, rank);
    if (!src.ok()) return src.status();
    if (!dst.ok()) return dst.status();
    transfer->src_needs_.push_back({*std::move(src), tensor.src_dtype});
    transfer->dst_needs_.push_back({*std::move(dst), tensor.dst_dtype});
    transfer->names_.push_back(tensor.name);
  }
  transfer->src_.resize(spec.tensors.size());
  transfer->dst_.resize(spec.tensors.size());
  transfer->candidate_.resize(2 * spec.tensors.size());
  return transfer;
}

void CompiledTransfer::FillStats(int rank) {
  for (const Bucket& bucket : plan_.buckets) {
    ++stats_.buckets;
    if (bucket.role != Role::kDestination) ++stats_.buckets_as_source;
    bucket_bytes_max_ = std::max(bucket_bytes_max_, bucket.bytes);
  }
  stats_.channels = static_cast<int64_t>(plan_.channels.size());
  for (const Channel& channel : plan_.channels) {
    if (channel.src == rank) ++stats_.channels_as_source;
  }
  stats_.sent_bytes = plan_.sent_bytes;
  stats_.received_bytes = plan_.received_bytes;
  stats_.local_bytes = plan_.local_bytes;
  stats_.peak_buckets_without_budget = plan_.peak_buckets_without_budget;
  stats_.peak_bytes_without_budget = plan_.peak_bytes_without_budget;
}

absl::Status CompiledTransfer::Bind(absl::Span<const TensorView> src,
                                    absl::Span<const TensorView> dst) {
  const size_t count = spec_.tensors.size();
  if (src.size() != count || dst.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("the transfer has ", count, " tensors, but ",
                                                   src.size(), " source and ", dst.size(),
                                                   " destination views are given"));
  }
  if (absl::Status status = BindSide(src, false); !status.ok()) return status;
  if (absl::Status status = BindSide(dst, true); !status.ok()) return status;
  const auto middle = candidate_.begin() + static_cast<ptrdiff_t>(count);
  if (std::equal(candidate_.begin(), middle, src_.begin()) &&
      std::equal(middle, candidate_.end(), dst_.begin())) {
    return absl::OkStatus();
  }
  const absl::Span<const BoundView> bound = candidate_;
  absl::Status status = CheckAliasing(bound.subspan(0, count), bound.subspan(count), names_);
  if (!status.ok()) return status;
  std::copy(candidate_.begin(), middle, src_.begin());
  std::copy(middle, candidate_.end(), dst_.begin());
  return absl::OkStatus();
}

absl::Status CompiledTransfer::BindSide(absl::Span<const TensorView> views, bool is_dst) {
  const std::vector<ViewNeed>& needs = is_dst ? dst_needs_ : src_needs_;
  const size_t first = is_dst ? views.size() : 0;
  for (size_t t = 0; t < views.size(); ++t) {
    absl::Status status = BindView(views[t], needs[t], is_dst, &candidate_[first + t]);
    if (status.ok()) continue;
    return absl::Status(status.code(),
                        absl::StrCat(is_dst ? "destination" : "source", " of tensor ", t, " '",
                                     names_[t], "': ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace sluice
