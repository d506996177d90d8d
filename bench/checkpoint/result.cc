// Adding up.
#include "checkpoint/result.h"

#include <algorithm>
#include <cmath>

namespace sluice::bench {
namespace {

double SortedQuantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

}  // namespace

void AddIteration(absl::Span<const CheckpointRecord> records, bool timed,
                  CheckpointResult* result) {
  CheckpointStats sum;
  for (const CheckpointRecord& record : records) {
    const CheckpointStats& s = record.stats;
    for (const auto field :
         {&CheckpointStats::pieces, &CheckpointStats::file_pieces, &CheckpointStats::file_bytes,
          &CheckpointStats::bytes_read, &CheckpointStats::header_bytes, &CheckpointStats::bytes,
          &CheckpointStats::sent_bytes, &CheckpointStats::retries}) {
      sum.*field += s.*field;
    }
    for (const auto field :
         {&CheckpointStats::tensors, &CheckpointStats::tensors_ignored, &CheckpointStats::files,
          &CheckpointStats::slots_max, &CheckpointStats::slots_peak, &CheckpointStats::budget_bytes,
          &CheckpointStats::budget_bytes_peak, &CheckpointStats::piece_bytes}) {
      sum.*field = std::max(sum.*field, s.*field);
    }
    for (const auto field :
         {&CheckpointStats::seconds, &CheckpointStats::planning, &CheckpointStats::reading,
          &CheckpointStats::exchanging, &CheckpointStats::copying, &CheckpointStats::writing,
          &CheckpointStats::syncing}) {
      sum.*field = std::max(sum.*field, s.*field);
    }
    result->wrong += record.wrong;
  }
  if (timed) result->seconds.push_back(absl::ToDoubleSeconds(sum.seconds));
  result->stats = sum;
}

void AddIteration(absl::Span<const CheckpointRecord> records, bool timed, OtherWay* way) {
  absl::Duration longest;
  for (const CheckpointRecord& record : records) {
    longest = std::max(longest, record.stats.seconds);
    way->wrong += record.wrong;
  }
  if (timed) way->seconds.push_back(absl::ToDoubleSeconds(longest));
}

double MedianSeconds(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const size_t half = seconds.size() / 2;
  return seconds.size() % 2 == 1 ? seconds[half] : (seconds[half - 1] + seconds[half]) / 2;
}

double GbPerS(const CheckpointResult& result, const std::vector<double>& seconds) {
  return static_cast<double>(result.stats.file_bytes) / MedianSeconds(seconds) / 1e9;
}

TimeRatio RatioOf(const OtherWay& way, const CheckpointResult& ours) {
  std::vector<double> ratios;
  for (size_t i = 0; i < way.seconds.size(); ++i) {
    ratios.push_back(way.seconds[i] / ours.seconds[i]);
  }
  std::sort(ratios.begin(), ratios.end());
  return {MedianSeconds(way.seconds) / MedianSeconds(ours.seconds), SortedQuantile(ratios, 0.25),
          SortedQuantile(ratios, 0.75)};
}

}  // namespace sluice::bench
