// The budget's arithmetic.
#include "session/limits.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sluice {
namespace {

constexpr int64_t kBucketBytesMin = 16;  // two of the largest elements
constexpr int64_t kBucketBytesMax = int64_t{1} << 30;
constexpr int kMaxInFlightMax = 1 << 16;
constexpr int64_t kDefaultBudgetBuckets = 16;
constexpr int64_t kAutoSlotBytesMax = int64_t{8} << 20;
// Below this, slots become fewer instead: a message of its own costs more than its bytes.
constexpr int64_t kAutoSlotBytesMin = int64_t{64} << 10;
constexpr int64_t kSlotAlignmentBytes = 64;            // a cache line
constexpr int64_t kTraceEventsMax = int64_t{1} << 24;  // 1 GiB

absl::Status OutOfRange(absl::string_view name, int64_t value, absl::string_view range) {
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", value, "; ", range));
}

absl::Status CheckRanges(const SessionOptions& options) {
  const int64_t bucket_bytes = options.bucket_bytes.value_or(kBucketBytesMin);
  if (bucket_bytes < kBucketBytesMin || bucket_bytes > kBucketBytesMax) {
    return OutOfRange(
        "bucket_bytes", bucket_bytes,
        absl::StrCat("it must be ", kBucketBytesMin, " to ", kBucketBytesMax, ", or not set"));
  }
  const int max_in_flight = options.max_in_flight.value_or(1);
  if (max_in_flight < 1 || max_in_flight > kMaxInFlightMax) {
    return OutOfRange("max_in_flight", max_in_flight,
                      absl::StrCat("it must be 1 to ", kMaxInFlightMax, ", or not set"));
  }
  if (options.budget_buckets < 1) {
    return OutOfRange("budget_buckets", options.budget_buckets,
                      "it must be 1 or more, or kNoLimit");
  }
  if (options.budget_bytes.value_or(1) < 1) {
    return OutOfRange("budget_bytes", *options.budget_bytes,
                      "it must be 1 or more, or kNoLimit, or not set");
  }
  if (options.trace_events < 0 || options.trace_events > kTraceEventsMax) {
    return OutOfRange("trace_events", options.trace_events,
                      absl::StrCat("it must be 0 to ", kTraceEventsMax));
  }
  if (options.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("timeout must be positive");
  }
  if (options.patience < absl::ZeroDuration()) {
    return absl::InvalidArgumentError("patience must not be negative");
  }
  return absl::OkStatus();
}

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
  if (absl::Status status = CheckRanges(options); !status.ok()) return status;
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
