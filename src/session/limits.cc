// The budget's arithmetic.
#include "session/limits.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "session/describe_session.h"

namespace sluice {
namespace {

constexpr int64_t kBucketBytesMin = 16;  // two of the largest elements
constexpr int64_t kDefaultBudgetBuckets = 16;
constexpr int64_t kAutoSlotBytesMax = int64_t{8} << 20;
// Below this, slots become fewer instead: a message of its own costs more than its bytes.
constexpr int64_t kAutoSlotBytesMin = int64_t{64} << 10;
constexpr int64_t kSlotAlignmentBytes = 64;  // a cache line

// Automatic buckets make room for as many slots as there are by default, in whatever there is.
int64_t SlotBytesOf(const SessionOptions& options) {
  if (options.bucket_bytes) return *options.bucket_bytes;
  const int64_t budget_bytes = options.budget_bytes.value_or(kNoLimit);
  if (budget_bytes == kNoLimit) return kAutoSlotBytesMax;
  const int64_t slots = std::min(kDefaultBudgetBuckets, options.budget_buckets);
  const int64_t even = budget_bytes / slots / kSlotAlignmentBytes * kSlotAlignmentBytes;
  // A budget that is smaller than that is one slot.
  const int64_t least = std::clamp(budget_bytes, kBucketBytesMin, kAutoSlotBytesMin);
  return std::clamp(even, least, kAutoSlotBytesMax);
}

}  // namespace

absl::StatusOr<Budget> ResolveBudget(const SessionOptions& options) {
  CheckRanges ranges(RangeWords::kItMust);
  Describe(ranges, options);
  if (!ranges.status().ok()) return ranges.status();
  const int64_t slot_bytes = SlotBytesOf(options);
  const bool limits_buckets = options.budget_buckets != kNoLimit;
  const int64_t budget_bytes = options.budget_bytes.value_or(kDefaultBudgetBuckets * slot_bytes);
  if (budget_bytes == kNoLimit) {
    return Budget{limits_buckets ? options.budget_buckets : 0, slot_bytes};
  }
  const int64_t slots_by_bytes = budget_bytes / slot_bytes;
  if (slots_by_bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the budget has no room for one bucket: budget_bytes ", budget_bytes,
                     " / bucket_bytes ", slot_bytes, " = 0 slots (budget_buckets ",
                     limits_buckets ? absl::StrCat(options.budget_buckets) : "kNoLimit",
                     "); raise budget_bytes to at least ", slot_bytes, " or lower bucket_bytes"));
  }
  return Budget{std::min(options.budget_buckets, slots_by_bytes), slot_bytes};
}

int MaxInFlightOf(const SessionOptions& options, int ranks) {
  const int wanted = options.max_in_flight.value_or(0);
  const bool has_budget =
      options.budget_buckets != kNoLimit || options.budget_bytes.value_or(0) != kNoLimit;
  if (!has_budget) return wanted;
  constexpr int kOnTheirWayMax = 2048 / kPriorityClasses;
  constexpr int kLeast = 8;  // as many as an automatic channel has
  const int most = std::max(kOnTheirWayMax / std::max(ranks - 1, 1), kLeast);
  return std::min(wanted, most);
}

}  // namespace sluice
