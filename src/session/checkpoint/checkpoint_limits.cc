// Budgets in bytes become slots.
#include "session/checkpoint_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "session/bookkeeping.h"
#include "session/checkpoint_work.h"
#include "storage/source.h"

namespace sluice {
namespace {

constexpr int64_t kPieceBytesMin = 64;
constexpr int64_t kPieceBytesMax = int64_t{1} << 30;
constexpr int64_t kSlotsMax = int64_t{1} << 14;
// Messages that a transport has room set aside for, where a piece alone does not have more.
constexpr int64_t kMessagesMax = int64_t{1} << 17;

int64_t RoundUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

absl::Status CheckCheckpointOptions(const CheckpointOptions& options) {
  const auto at_least = [](absl::string_view name, int64_t value, int64_t least) {
    if (value >= least) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", value, " but must be at least ", least));
  };
  absl::Status status;
  status.Update(at_least("budget_bytes", options.budget_bytes, 1));
  status.Update(at_least("slots", options.slots, 0));
  status.Update(at_least("piece_bytes", options.piece_bytes, kPieceBytesMin));
  status.Update(at_least("shard_bytes_max", options.shard_bytes_max, 1));
  status.Update(at_least("retry.attempts_max", options.retry.attempts_max, 1));
  status.Update(at_least("connections", options.connections, 1));
  if (status.ok() && options.piece_bytes > kPieceBytesMax) {
    status = absl::InvalidArgumentError(absl::StrCat("piece_bytes is ", options.piece_bytes,
                                                     " but must be at most ", kPieceBytesMax));
  }
  if (status.ok() && options.timeout <= absl::ZeroDuration()) {
    status = absl::InvalidArgumentError("timeout must be above 0");
  }
  if (status.ok() && options.retry.request_timeout <= absl::ZeroDuration()) {
    status = absl::InvalidArgumentError("retry.request_timeout must be above 0");
  }
  return status;
}

absl::StatusOr<CheckpointLimits> ResolveCheckpointLimits(const CheckpointOptions& options,
                                                         const CheckpointPlan& plan,
                                                         int64_t alignment) {
  const int64_t box_bytes = std::max<int64_t>(1, plan.box_bytes_max());
  const int64_t read_bytes = RoundUp(box_bytes + alignment - 1, alignment);
  const int64_t packed_bytes =
      plan.packed_bytes_max() == 0
          ? 0
          : PackedOffset(plan.packed_bytes_max()) + plan.packed_bytes_max() + alignment - 1;
  CheckpointLimits limits;
  limits.block_bytes = RoundUp(std::max(read_bytes, packed_bytes), kReadAlignment);
  if (options.budget_bytes < limits.block_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "budget_bytes ", options.budget_bytes, " is too small: the least is ", limits.block_bytes,
        " (a piece of ", box_bytes, " bytes at alignment ", alignment,
        plan.packed_bytes_max() > 0 ? ", or half of one and its parts in order" : "",
        "); piece_bytes makes pieces smaller"));
  }
  const Bookkeeping kept = {.messages = plan.messages_max()};
  int64_t slots =
      std::min(BlocksInBudget(options.budget_bytes, limits.block_bytes, kept, 1), kSlotsMax);
  slots = std::min(slots, std::max<int64_t>(1, kMessagesMax / std::max(1, plan.messages_max())));
  if (options.slots > 0) slots = std::min(slots, options.slots);
  // No rank has more pieces than there are.
  limits.slots = static_cast<int>(std::min(slots, std::max<int64_t>(1, plan.boxes())));
  return limits;
}

}  // namespace sluice
