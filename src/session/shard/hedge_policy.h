// Decides when a read that takes long is started once more.
//
// A tenth of reads that take ten times as long hold back everything behind them, in order. One
// duplicate past a high quantile of what reads usually take mends that for few extra requests: J.
// Dean, L. Barroso, "The Tail at Scale", CACM 56(2), 2013. Pure: times are the caller's.
#ifndef SLUICE_SRC_SESSION_SHARD_HEDGE_POLICY_H_
#define SLUICE_SRC_SESSION_SHARD_HEDGE_POLICY_H_

#include <array>
#include <cstdint>

#include "sluice/stream.h"

namespace sluice {

class HedgePolicy {
 public:
  explicit HedgePolicy(const HedgeOptions& options) : options_(options) {}

  bool enabled() const { return options_.enabled; }

  // A request was made that is no hedge; one was a hedge.
  void CountRequest() { ++requests_; }
  void CountHedge() { ++hedges_; }

  // A request was answered after so long.
  void Learn(int64_t latency_ns);

  // A request that has taken so long should be hedged; INT64_MAX while too few are known.
  int64_t threshold_ns() const { return threshold_ns_; }
  // True if one more hedge keeps within the stated share of extra requests.
  bool MayHedge() const;

 private:
  // Buckets of latencies: 8 for each doubling, from 2^12 ns (4 us) to 2^42 ns (73 minutes).
  static constexpr int kPerDoubling = 8;
  static constexpr int kDoublings = 30;
  static constexpr int kFirstBit = 12;
  static constexpr int kBuckets = kPerDoubling * kDoublings;
  static constexpr int kSamplesMin = 16;
  // Counts are halved when there are so many, so that what is learned stays recent.
  static constexpr int kSamplesMax = 2048;
  // Ordinary spread is not a tail: only what takes this much longer than the quantile is.
  static constexpr double kMargin = 1.5;

  static int BucketOf(int64_t latency_ns);
  static int64_t UpperEndNs(int bucket);
  void UpdateThreshold();

  HedgeOptions options_;
  std::array<int32_t, kBuckets> counts_{};
  int samples_ = 0;
  int64_t threshold_ns_ = INT64_MAX;
  int64_t requests_ = 0;
  int64_t hedges_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SHARD_HEDGE_POLICY_H_
