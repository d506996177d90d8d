// What one run of one mode came to on one rank, and over all ranks.
#ifndef SLUICE_BENCH_STREAM_OUTCOME_H_
#define SLUICE_BENCH_STREAM_OUTCOME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
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
  int64_t read_runs = 0;       // stretches of storage that were read in order
  int64_t trace_left_out = 0;  // spans of later epochs
  double busy_s = 0;           // while a read, exchange or copy was under way
  double next_wait_s = 0;      // the consumer's, in Next
  int64_t opens = 0;
  int64_t connections = 0;
  int64_t hedges = 0;
  int64_t hedges_won = 0;
  int64_t retries = 0;
  int64_t wrong = 0;
  int64_t staleness_max = 0;  // of a generator's items
  uint64_t item_hash = 0;     // of these, in their order; of all ranks, in theirs
  int64_t bytes_copied = 0;   // into device buffers; of Sluice's own stream
  double cpu_s = 0;           // of this process, while items came
  int64_t major_faults = 0;   // of the consumer's thread, meanwhile
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

// Processor time for each GiB delivered.
double CpuPerGiB(const RankOutcome& outcome);

// For the way between ranks.
std::string Encode(const RankOutcome& outcome);
RankOutcome DecodeOutcome(const std::string& text);

// The share of the time with reads or copies under way in which no consumer waited; nothing where
// that time is not known.
absl::optional<double> OverlapOf(const RankOutcome& outcome);
// Bytes that were read in the order of storage, on average; nothing where requests are not known.
absl::optional<double> SequentialBytes(const RankOutcome& outcome);

// Of the job: sums, but the slowest rank's `seconds`, `first_item_s` and `half_s`, and the largest
// peaks, limits and growth of any rank.
struct Result {
  std::string mode;
  RankOutcome total;
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
