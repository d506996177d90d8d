// Planning a transfer, and what its runs need to know of the plan.
#include "session/transfer/compiled_transfer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "device/cache_share.h"
#include "tensor/error_text.h"

namespace sluice {

absl::StatusOr<std::unique_ptr<CompiledTransfer>> CompiledTransfer::Make(const TransferSpec& spec,
                                                                         const PlanOptions& options,
                                                                         int rank,
                                                                         uint64_t plan_hash) {
  const int64_t begin_ns = MonotonicNs();
  std::unique_ptr<CompiledTransfer> transfer(new CompiledTransfer());
  if (HasBoxes(spec)) {
    SLUICE_ASSIGN_OR_RETURN(CellSpec cells, CutIntoCells(spec));
    transfer->cells_ = std::make_unique<const CellSpec>(std::move(cells));
  }
  transfer->spec_ = spec;
  SLUICE_ASSIGN_OR_RETURN(Plan plan, MakePlan(transfer->planned(), options, rank));
  transfer->stats_.plan_time = absl::Nanoseconds(MonotonicNs() - begin_ns);
  transfer->plan_ = std::move(plan);
  transfer->stats_.plan_hash = plan_hash;
  transfer->FillStats(rank);
  transfer->ChooseStores(rank, options.node_of_rank);
  SLUICE_ASSIGN_OR_RETURN(TensorParts parts,
                          TensorParts::Make(transfer->spec_, transfer->cells_.get(), rank));
  transfer->parts_ = std::make_unique<const TensorParts>(std::move(parts));
  for (const int tensor : transfer->parts_->tensors_of_parts()) {
    transfer->names_.push_back(transfer->spec_.tensors[static_cast<size_t>(tensor)].name);
  }
  transfer->FillWindows();
  transfer->FindSent();
  return transfer;
}

void CompiledTransfer::FillStats(int rank) {
  for (const Bucket& bucket : plan_.buckets) {
    ++stats_.buckets;
    const Channel& channel = plan_.channels[static_cast<size_t>(bucket.channel)];
    if (channel.src == rank) ++stats_.buckets_as_source;
    if (bucket.role != Role::kLocal) slot_bytes_ = std::max(slot_bytes_, SlotBytes(plan_, bucket));
    operations_max_ = std::max({operations_max_, 1, channel.child_count});
    if (channel.adds_near) fold_sources_max_ = std::max(fold_sources_max_, channel.added_count);
  }
  stats_.channels = static_cast<int64_t>(plan_.channels.size());
  for (const Channel& channel : plan_.channels) {
    if (channel.src == rank) ++stats_.channels_as_source;
  }
  stats_.bucket_bytes = plan_.bucket_bytes;
  stats_.max_in_flight = plan_.max_in_flight;
  stats_.sent_bytes = plan_.sent_bytes;
  stats_.received_bytes = plan_.received_bytes;
  stats_.local_bytes = plan_.local_bytes;
  stats_.peak_buckets_without_budget = plan_.peak_buckets_without_budget;
  stats_.peak_bytes_without_budget = plan_.peak_bytes_without_budget;
}

// Ranks that take turns on a CPU push each other's bytes out of its cache.
void CompiledTransfer::ChooseStores(int rank, absl::Span<const int> node_of_rank) {
  const auto of_node =
      std::count(node_of_rank.begin(), node_of_rank.end(), node_of_rank[static_cast<size_t>(rank)]);
  const double bytes = static_cast<double>(stats_.received_bytes + stats_.local_bytes);
  const double of_cpu = std::min(bytes * RanksPerCpu(of_node), 1e18);  // fits an int64_t
  stores_ = ResolveStores(WriteHint::kAuto, static_cast<int64_t>(of_cpu));
}

void CompiledTransfer::FillWindows() {
  std::map<int, std::vector<int>> tensors;
  for (size_t t = 0; t < planned().tensors.size(); ++t) {
    tensors[planned().tensors[t].window].push_back(static_cast<int>(t));
  }
  windows_of_tensors_.resize(planned().tensors.size());
  size_t next = 0;
  for (auto& [window_number, of_window] : tensors) {
    Window window;
    window.number = window_number;
    window.first_bucket = next;
    const uint64_t id = static_cast<uint64_t>(window_number);
    while (next < plan_.buckets.size() && plan_.buckets[next].id.fields().window == id) ++next;
    window.end_bucket = next;
    window.tensors = std::move(of_window);
    for (const int t : window.tensors) {
      windows_of_tensors_[static_cast<size_t>(t)] = windows_.size();
    }
    windows_.push_back(std::move(window));
  }
  tensor_chunks_.resize(planned().tensors.size());
  for (const Chunk& chunk : plan_.chunks) ++tensor_chunks_[static_cast<size_t>(chunk.tensor)];
}

void CompiledTransfer::FindSent() {
  sends_src_.resize(planned().tensors.size());
  sends_dst_.resize(planned().tensors.size());
  for (const Bucket& bucket : plan_.buckets) {
    if (bucket.role == Role::kLocal) continue;
    const Channel& channel = plan_.channels[static_cast<size_t>(bucket.channel)];
    // An owner adds its own contribution where it lies.
    const bool gives = !Has(bucket.role, Role::kOwner) &&
                       (Has(bucket.role, Role::kSource) || Has(bucket.role, Role::kContributor));
    const bool hands_on = Has(bucket.role, Role::kDestination) && channel.child_count > 0;
    for (int32_t c = 0; c < bucket.chunk_count; ++c) {
      const Chunk& chunk = plan_.chunks[static_cast<size_t>(bucket.first_chunk + c)];
      const size_t tensor = static_cast<size_t>(chunk.tensor);
      if (gives) sends_src_[tensor] = true;
      if (hands_on) sends_dst_[tensor] = true;
    }
  }
}

}  // namespace sluice
