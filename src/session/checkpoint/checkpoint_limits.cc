// Budgets in bytes become slots.
#include "session/checkpoint/checkpoint_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "session/base/bookkeeping.h"
#include "session/checkpoint/checkpoint_work.h"
#include "session/checkpoint/describe_checkpoint.h"
#include "storage/source.h"
#include "tensor/round.h"

namespace sluice {
namespace {

constexpr int64_t kSlotsMax = int64_t{1} << 14;
// Beyond so many bytes a budget is as good as none.
constexpr int64_t kBudgetBytesCounted = int64_t{1} << 60;
// Messages that a transport has room set aside for, where a piece alone does not have more.
constexpr int64_t kMessagesMax = int64_t{1} << 17;

}  // namespace

absl::Status CheckCheckpointOptions(const CheckpointOptions& options) {
  CheckRanges ranges(RangeWords::kBut);
  Describe(ranges, options);
  return ranges.status();
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
  const int64_t budget_bytes = std::min(options.budget_bytes, kBudgetBytesCounted);
  int64_t slots = std::min(BlocksInBudget(budget_bytes, limits.block_bytes, kept, 1), kSlotsMax);
  slots = std::min(slots, std::max<int64_t>(1, kMessagesMax / std::max(1, plan.messages_max())));
  if (options.slots) slots = std::min(slots, *options.slots);
  // No rank has more pieces than there are.
  limits.slots = static_cast<int>(std::min(slots, std::max<int64_t>(1, plan.boxes())));
  return limits;
}

}  // namespace sluice
