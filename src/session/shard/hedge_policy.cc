// A histogram of latencies, and a quantile of it.
#include "session/shard/hedge_policy.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace sluice {

int HedgePolicy::BucketOf(int64_t latency_ns) {
  const uint64_t value = static_cast<uint64_t>(std::max(latency_ns, int64_t{1} << kFirstBit));
  const int bit = static_cast<int>(std::bit_width(value)) - 1;
  const int eighth = static_cast<int>((value >> (bit - 3)) & (kPerDoubling - 1));
  return std::min((bit - kFirstBit) * kPerDoubling + eighth, kBuckets - 1);
}

int64_t HedgePolicy::UpperEndNs(int bucket) {
  const int bit = kFirstBit + bucket / kPerDoubling;
  return (int64_t{kPerDoubling + bucket % kPerDoubling + 1} << bit) / kPerDoubling;
}

void HedgePolicy::Learn(int64_t latency_ns) {
  if (!options_.enabled) return;
  ++counts_[static_cast<size_t>(BucketOf(latency_ns))];
  if (++samples_ >= kSamplesMax) {
    samples_ = 0;
    for (int32_t& count : counts_) samples_ += count /= 2;
  }
  // Early on every sample matters; later on few do.
  if (samples_ >= kSamplesMin && (samples_ < 128 || samples_ % 16 == 0)) UpdateThreshold();
}

void HedgePolicy::UpdateThreshold() {
  const double rank = std::ceil(options_.quantile * samples_);
  int bucket = 0;
  int below = counts_[0];
  while (below < rank && bucket < kBuckets - 1) below += counts_[static_cast<size_t>(++bucket)];
  threshold_ns_ = static_cast<int64_t>(kMargin * static_cast<double>(UpperEndNs(bucket)));
}

bool HedgePolicy::MayHedge() const {
  if (!options_.enabled) return false;
  // One may always be ahead of the share, or a short stream could not have any.
  return static_cast<double>(hedges_) <= options_.extra_share_max * static_cast<double>(requests_);
}

}  // namespace sluice
