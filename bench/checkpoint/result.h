// What comes of saves and loads over all ranks and iterations.
#ifndef SLUICE_BENCH_CHECKPOINT_RESULT_H_
#define SLUICE_BENCH_CHECKPOINT_RESULT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "sluice/checkpoint.h"

namespace sluice::bench {

// One rank's part of one call; travels as bytes between ranks.
struct CheckpointRecord {
  CheckpointStats stats;  // of another way to load: the time alone
  int64_t wrong = 0;
};

// A way to load that had its turn in each iteration.
struct OtherWay {
  std::string name;
  std::string reason = {};           // not empty: why it could not load this
  std::vector<double> seconds = {};  // of each iteration: the longest of any rank
  int64_t wrong = 0;                 // of all, warm-up included
};

// Sums over the ranks, but for times, peaks and limits: the largest of any rank.
struct CheckpointResult {
  std::string mode;                  // "save" or "load"
  bool checked = false;              // whether elements were compared,
  bool sampled = false;              // and then only some of them
  std::vector<double> seconds = {};  // of each iteration
  CheckpointStats stats = {};        // of the last one
  int64_t wrong = 0;                 // of all, warm-up included
  std::vector<OtherWay> others = {};
};

// `timed`: no warm-up.
void AddIteration(absl::Span<const CheckpointRecord> records, bool timed, CheckpointResult* result);
void AddIteration(absl::Span<const CheckpointRecord> records, bool timed, OtherWay* way);

// Of at least one.
double MedianSeconds(std::vector<double> seconds);

// 10^9 bytes of the tensors, as they lie in files, in a second at the median.
double GbPerS(const CheckpointResult& result, const std::vector<double>& seconds);

// Another way's time over ours: of the medians, and quartiles of the iterations' ratios.
struct TimeRatio {
  double medians = 0;
  double p25 = 0;
  double p75 = 0;
};
TimeRatio RatioOf(const OtherWay& way, const CheckpointResult& ours);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_CHECKPOINT_RESULT_H_
