// How a runner makes room for the runs of a transfer: slots, operations, lanes, channels.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plan/channels.h"
#include "session/runner.h"
#include "tensor/check.h"

namespace sluice {
namespace {

constexpr int kLookAheadMin = 4096;

int64_t RoundUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

MemoryRules Runner::MemoryRulesFor(const Accelerator* accelerator) const {
  const TransportTraits& traits = transport_->traits();
  MemoryRules rules;
  rules.accelerator = accelerator;
  rules.staging = traits.takes_host_memory ? device_->traits().staging : device_->traits().buffers;
  rules.takes_host_memory = traits.takes_host_memory && !traits.staged_only;
  rules.takes_device_memory = traits.takes_device_memory && !traits.staged_only;
  rules.takes_rows = traits.takes_rows;
  rules.takes_folds = traits.takes_folds;
  return rules;
}

absl::Status Runner::Prepare(CompiledTransfer* transfer) {
  SLUICE_CHECK(runs_.empty() && !busy(), "a run is in flight");
  const Plan& plan = transfer->plan();
  // More slots than the channels of all transfers can fill would never be used.
  const int64_t most = std::max<int64_t>(1, slots_wanted_ + plan.peak_buckets_without_budget);
  const int64_t wanted = slots_ == 0 ? most : std::min(slots_, most);
  const int64_t slot_bytes = std::max(slot_bytes_, RoundUp(transfer->slot_bytes(), 64));
  const int sources = transport_->traits().takes_folds ? transfer->fold_sources_max() : 0;
  const int operations =
      std::max({operations_max_, transfer->operations_max(), sources > 0 ? 1 + sources : 0});
  if (wanted > std::numeric_limits<int>::max() / 4 / operations ||
      plan.buckets.size() >= uint64_t{1} << BucketWork::kIndexBits) {
    return absl::ResourceExhaustedError(
        absl::StrCat(wanted, " slots for ", plan.buckets.size(), " buckets are too many"));
  }
  // An error leaves everything as the transfers before need it.
  if (absl::Status status = GrowStaging(wanted, slot_bytes); !status.ok()) return status;
  const int slots = static_cast<int>(wanted);
  absl::Status reserved = transport_->Reserve(slots * operations);
  if (!reserved.ok()) return reserved;
  slots_wanted_ = most;
  slot_bytes_ = slot_bytes;
  operations_max_ = operations;
  // Groups have one order on all ranks, which no rank can change by what is urgent there.
  transfer->lane = in_groups_ ? 0 : transfer->spec().priority_class;
  lane_count_ = std::max(lane_count_, transfer->lane + 1);
  NumberChannels(transfer);
  last_moving_.resize(channels_.size(), kNoSlot);
  EngineOptions options;
  options.channels = static_cast<int>(channels_.size());
  options.max_in_flight = max_in_flight_;
  options.slots = slots;
  options.look_ahead = std::max(kLookAheadMin, 2 * slots);
  options.lanes = lane_count_;
  if (!engine_ || options.channels > engine_->options().channels ||
      options.slots > engine_->options().slots || options.lanes > engine_->options().lanes) {
    engine_.emplace(options);
    held_.resize(static_cast<size_t>(slots));
  }
  fold_sources_max_ = std::max(fold_sources_max_, sources);
  for (Held& held : held_) held.work.ReserveSources(static_cast<size_t>(fold_sources_max_));
  messages_.reserve(static_cast<size_t>(slots) * static_cast<size_t>(operations));
  if (in_stream_order_) endings_.Reserve(static_cast<size_t>(slots));
  if (in_groups_) hop_.reserve(messages_.capacity());
  return absl::OkStatus();
}

absl::Status Runner::GrowStaging(int64_t slots, int64_t slot_bytes) {
  const size_t staging_bytes = static_cast<size_t>(slots) * static_cast<size_t>(slot_bytes);
  if (staging_bytes <= staging_.bytes()) return absl::OkStatus();
  absl::StatusOr<DeviceMemory> staging = transport_->traits().takes_host_memory
                                             ? device_->AllocateStaging(staging_bytes)
                                             : device_->AllocateBuffer(staging_bytes);
  if (!staging.ok()) {
    return absl::Status(staging.status().code(),
                        absl::StrCat("staging of ", slots, " slots x ", slot_bytes,
                                     " bytes: ", staging.status().message()));
  }
  const absl::Span<std::byte> span = absl::MakeSpan(staging->data(), staging->bytes());
  if (absl::Status status = transport_->UseStaging(span); !status.ok()) return status;
  staging_ = *std::move(staging);
  return absl::OkStatus();
}

void Runner::NumberChannels(CompiledTransfer* transfer) {
  for (const Channel& channel : transfer->plan().channels) {
    std::vector<int64_t> key = ChannelContent(transfer->plan(), channel);
    key.push_back(transfer->lane);
    const int next = static_cast<int>(channels_.size());
    transfer->engine_channels.push_back(channels_.try_emplace(std::move(key), next).first->second);
  }
}

}  // namespace sluice
