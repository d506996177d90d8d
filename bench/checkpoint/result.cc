// Adding up.
#include "checkpoint/result.h"

#include <algorithm>

namespace sluice::bench {

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

}  // namespace sluice::bench
