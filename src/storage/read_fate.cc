// Draws fates by hashing, not from a generator: the order of reads does not matter.
#include "storage/read_fate.h"

#include "tensor/mix_bits.h"

namespace sluice {
namespace {

// Draws for different purposes are independent.
enum class Purpose : uint64_t { kJitter = 1, kTail, kItemFault, kAttemptFault };

// Uniform in [0, 1).
double Draw(uint64_t seed, Purpose purpose, int64_t item, int attempt) {
  uint64_t bits = MixBits(seed);
  bits = MixBits(bits ^ static_cast<uint64_t>(purpose));
  bits = MixBits(bits ^ static_cast<uint64_t>(item));
  bits = MixBits(bits ^ static_cast<uint64_t>(attempt));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

ReadFate::Fault FaultOf(const DelayOptions& options, int64_t item, int attempt) {
  const FaultSpec& faults = options.faults;
  if (!faults.any()) return ReadFate::Fault::kNone;
  const double of_item = Draw(options.seed, Purpose::kItemFault, item, 0);
  if (of_item < faults.permanent) return ReadFate::Fault::kPermanent;
  if (of_item < faults.permanent + faults.short_object) return ReadFate::Fault::kShort;
  const double of_attempt = Draw(options.seed, Purpose::kAttemptFault, item, attempt);
  if (of_attempt < faults.hang) return ReadFate::Fault::kHang;
  if (of_attempt < faults.hang + faults.transient && attempt < faults.transient_attempts) {
    return ReadFate::Fault::kTransient;
  }
  return ReadFate::Fault::kNone;
}

}  // namespace

absl::Status CheckDelayOptions(const DelayOptions& options) {
  // Written so that NaN fails, too.
  const bool fits = options.latency_ns >= 0 && options.jitter >= 0 && options.jitter <= 1 &&
                    options.tail_percent >= 0 && options.tail_percent <= 100 &&
                    options.tail_factor >= 0 &&
                    static_cast<double>(options.latency_ns) * options.tail_factor < 1e18;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a latency, its jitter (0 to 1) or its tail (0 to 100 percent) is out of range");
}

ReadFate FateOf(const DelayOptions& options, int64_t item, int attempt) {
  auto latency_ns = static_cast<double>(options.latency_ns);
  if (options.jitter > 0) {
    const double side = 2 * Draw(options.seed, Purpose::kJitter, item, attempt) - 1;
    latency_ns *= 1 + options.jitter * side;
  }
  if (options.tail_percent > 0 &&
      Draw(options.seed, Purpose::kTail, item, attempt) * 100 < options.tail_percent) {
    latency_ns *= options.tail_factor;
  }
  return {static_cast<int64_t>(latency_ns), FaultOf(options, item, attempt)};
}

}  // namespace sluice
