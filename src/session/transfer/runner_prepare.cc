// Makes room in a runner for the runs of a transfer: slots, operations, lanes, channels.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plan/channels.h"
#include "session/base/bookkeeping.h"
#include "session/transfer/runner.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "tensor/round.h"

namespace sluice {
namespace {

constexpr int kLookAheadMin = 4096;
// Beyond so many slots a budget is as good as none.
constexpr int64_t kSlotsCounted = int64_t{1} << 28;

// Channels with equal content are one, but for the lanes that they are of.
std::vector<int64_t> KeyOf(const CompiledTransfer& transfer, const Channel& channel) {
  std::vector<int64_t> key = ChannelContent(transfer.plan(), channel);
  key.push_back(transfer.lane);
  return key;
}

}  // namespace

MemoryRules Runner::MemoryRulesFor(const Accelerator* accelerator) const {
  const TransportTraits& traits = carrier_.transport()->traits();
  MemoryRules rules;
  rules.accelerator = accelerator;
  rules.staging = traits.takes_host_memory ? device_->traits().staging : device_->traits().buffers;
  rules.takes_host_memory = traits.takes_host_memory && !traits.staged_only;
  rules.takes_device_memory = traits.takes_device_memory && !traits.staged_only;
  rules.takes_rows = traits.takes_rows;
  rules.takes_folds = traits.takes_folds;
  rules.copies_inline = device_->traits().copies_inline;
  rules.transport = carrier_.transport();
  return rules;
}

absl::Status Runner::Prepare(CompiledTransfer* transfer) {
  SLUICE_CHECK(runs_.empty() && !busy(), "a run is in flight");
  if (transfer->plan().buckets.size() >= uint64_t{1} << BucketWork::kIndexBits) {
    return absl::ResourceExhaustedError(
        absl::StrCat(transfer->plan().buckets.size(), " buckets are too many"));
  }
  CountIn(transfer);
  // An error leaves everything as the transfers before need it.
  absl::Status status = MakeRoom(NeedsOfAll());
  if (!status.ok()) CountOut(transfer);
  if (status.ok() && trace_.log != nullptr) TraceNames(transfer);
  return status;
}

void Runner::Forget(CompiledTransfer* transfer) {
  SLUICE_CHECK(runs_.empty() && !busy(), "a run is in flight");
  CountOut(transfer);
}

// More slots than the channels of all transfers can fill would never be used. A channel is filled
// by all transfers that have it, and takes max_in_flight buckets at most. So the number of slots
// does not grow with each transfer that is like others. Bookkeeping of slots comes out of the
// budget, so that many tiny buckets do not pass the budget.
Runner::Needs Runner::NeedsOfAll() const {
  Needs needs;
  int64_t most = 0;
  for (const auto& [key, channel] : channels_) {
    most += std::min<int64_t>(channel.in_flight, max_in_flight_);
  }
  needs.slots = std::max<int64_t>(1, slots_ == 0 ? most : std::min(slots_, most));
  int64_t bucket_bytes = 1;
  for (const CompiledTransfer* transfer : transfers_) {
    bucket_bytes = std::max(bucket_bytes, transfer->plan().bucket_bytes);
    const int sources =
        carrier_.transport()->traits().takes_folds ? transfer->fold_sources_max() : 0;
    needs.slot_bytes = std::max(needs.slot_bytes, RoundUp(transfer->slot_bytes(), 64));
    needs.operations =
        std::max({needs.operations, transfer->operations_max(), sources > 0 ? 1 + sources : 0});
    needs.fold_sources = std::max(needs.fold_sources, sources);
    needs.lanes = std::max(needs.lanes, transfer->lane + 1);
  }
  if (slots_ > 0) {
    const int64_t budget_bytes = std::min(slots_, kSlotsCounted) * bucket_bytes;
    needs.slots = std::min(
        needs.slots, BlocksInBudget(budget_bytes, bucket_bytes, {.messages = needs.operations}, 1));
  }
  return needs;
}

absl::Status Runner::MakeRoom(const Needs& needs) {
  EngineOptions options;
  options.channels = channel_numbers_;
  options.max_in_flight = max_in_flight_;
  options.lanes = needs.lanes;
  // A larger engine will do, where its slots fit the staging.
  const Engine* const engine = carrier_.engine();
  const bool keeps_engine =
      engine != nullptr && options.channels <= engine->options().channels &&
      options.lanes <= engine->options().lanes && needs.slots <= engine->options().slots &&
      engine->options().slots * needs.slot_bytes <= static_cast<int64_t>(staging_.bytes());
  const int64_t wanted = keeps_engine ? engine->options().slots : needs.slots;
  if (wanted > std::numeric_limits<int>::max() / 4 / needs.operations) {
    return absl::ResourceExhaustedError(
        absl::StrCat(wanted, " slots with ", needs.operations, " operations each are too many"));
  }
  if (absl::Status status = GrowStaging(wanted, needs.slot_bytes); !status.ok()) return status;
  const size_t slots = static_cast<size_t>(wanted);
  options.slots = static_cast<int>(wanted);
  options.look_ahead = std::max(kLookAheadMin, 2 * options.slots);
  const size_t messages = slots * static_cast<size_t>(needs.operations);
  SLUICE_RETURN_IF_ERROR(
      carrier_.MakeRoom(keeps_engine ? nullptr : &options, needs.operations, messages));
  slot_bytes_ = needs.slot_bytes;
  held_.resize(slots);
  lane_count_ = carrier_.engine()->options().lanes;
  for (Held& held : held_) held.work.ReserveSources(static_cast<size_t>(needs.fold_sources));
  if (in_groups_) hop_.reserve(carrier_.messages()->capacity());
  return absl::OkStatus();
}

absl::StatusOr<DeviceMemory> Runner::AllocateStaging(size_t bytes) {
  const TransportTraits& traits = carrier_.transport()->traits();
  if (traits.allocate_staging != nullptr) return traits.allocate_staging(device_.get(), bytes);
  return traits.takes_host_memory ? device_->AllocateStaging(bytes)
                                  : device_->AllocateBuffer(bytes);
}

absl::Status Runner::GrowStaging(int64_t slots, int64_t slot_bytes) {
  const size_t staging_bytes = static_cast<size_t>(slots) * static_cast<size_t>(slot_bytes);
  if (staging_bytes <= staging_.bytes()) return absl::OkStatus();
  absl::StatusOr<DeviceMemory> staging = AllocateStaging(staging_bytes);
  if (!staging.ok()) {
    return MakeError(staging.status().code(), "staging of ", slots, " slots x ", slot_bytes,
                     " bytes: ", staging.status());
  }
  const absl::Span<std::byte> span = absl::MakeSpan(staging->data(), staging->bytes());
  if (absl::Status status = carrier_.transport()->UseStaging(span); !status.ok()) return status;
  outgrown_ = std::move(staging_);
  staging_ = *std::move(staging);
  return absl::OkStatus();
}

void Runner::CountIn(CompiledTransfer* transfer) {
  // Groups have one order on all ranks, which no rank can change by what is urgent there.
  transfer->lane = in_groups_ ? 0 : transfer->spec().priority_class;
  const Plan& plan = transfer->plan();
  const size_t lane = static_cast<size_t>(transfer->lane);
  if (free_channels_.size() <= lane) free_channels_.resize(lane + 1);
  for (const Channel& channel : plan.channels) {
    const auto [found, added] = channels_.try_emplace(KeyOf(*transfer, channel));
    SharedChannel& shared = found->second;
    if (added && free_channels_[lane].empty()) {
      shared.number = channel_numbers_++;
    } else if (added) {
      shared.number = free_channels_[lane].back();
      free_channels_[lane].pop_back();
    }
    ++shared.transfers;
    shared.in_flight += std::min<int64_t>(channel.buckets, plan.max_in_flight);
    transfer->engine_channels.push_back(shared.number);
  }
  transfers_.push_back(transfer);
}

void Runner::CountOut(CompiledTransfer* transfer) {
  const Plan& plan = transfer->plan();
  for (const Channel& channel : plan.channels) {
    const auto found = channels_.find(KeyOf(*transfer, channel));
    SharedChannel& shared = found->second;
    shared.in_flight -= std::min<int64_t>(channel.buckets, plan.max_in_flight);
    if (--shared.transfers > 0) continue;
    free_channels_[static_cast<size_t>(transfer->lane)].push_back(shared.number);
    channels_.erase(found);
  }
  transfer->engine_channels.clear();
  transfers_.erase(std::find(transfers_.begin(), transfers_.end(), transfer));
}

}  // namespace sluice
