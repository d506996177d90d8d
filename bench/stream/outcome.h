// What one run of one mode came to on one rank, and over all ranks.
#ifndef SLUICE_BENCH_STREAM_OUTCOME_H_
#define SLUICE_BENCH_STREAM_OUTCOME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace sluice::bench {

struct StageSeconds {
  double read = 0;
  double exchange = 0;
  double copy = 0;
  double consume = 0;
  double wait = 0;
};

// Of one rank; times in seconds.
struct RankOutcome {
  absl::Status status;
  int64_t items = 0;
  int64_t bytes = 0;        // of these, as they lie on storage
  double seconds = 0;       // from the opening to the end of the last item's consumption
  double first_item_s = 0;  // to the first item's arrival
  double half_s = 0;        // until half of the items (rounded down) are consumed
  double later_wait_s = 0;  // the consumer's, after the first item
  int64_t requests = 0;
  int64_t bytes_read = 0;
  int64_t opens = 0;
  int64_t connections = 0;
  int64_t hedges = 0;
  int64_t hedges_won = 0;
  int64_t retries = 0;
  int64_t wrong = 0;
  int64_t peak_slots = 0;
  int64_t peak_bytes = 0;
  int64_t limit_slots = 0;
  int64_t limit_bytes = 0;
  int64_t device_bytes = 0;
  // By how much resident memory grew while items came; -1: nobody knows.
  int64_t grown_bytes = -1;
  int64_t grown_rank = -1;  // which rank's it is
  StageSeconds stage_s;
  std::string cursor;    // of Sluice's own stream
  std::string grown_by;  // how grown_bytes is known: MethodName
};

// For the way between ranks.
std::string Encode(const RankOutcome& outcome);
RankOutcome DecodeOutcome(const std::string& text);

// Of the job: sums, but the slowest rank's `seconds`, `first_item_s` and `half_s`, and the largest
// peaks, limits and growth of any rank.
struct Result {
  std::string mode;
  RankOutcome total;
  double bytes_per_s = 0;
  double stall_share = 0;  // the consumers' waits after the first item, of the time after it
  std::vector<double> all_seconds;  // of each round
};

// One round of a mode, of `ranks`.
Result SumOf(const std::string& mode, absl::Span<const RankOutcome> ranks);

// The round with the median time (the lower one of two), with what is wrong in any of the rounds
// and the largest peaks of all. At least one round.
Result MedianOf(absl::Span<const Result> rounds);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_OUTCOME_H_
