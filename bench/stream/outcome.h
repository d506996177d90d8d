// What one run of one mode came to on one rank, and over all ranks.
#ifndef SLUICE_BENCH_STREAM_OUTCOME_H_
#define SLUICE_BENCH_STREAM_OUTCOME_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "sluice/stream.h"

namespace sluice::bench {

// A hash of what was delivered, in its order: equal for two runs that delivered the same items. Not
// against adversaries.
class ItemHash {
 public:
  void Add(int64_t item, int64_t epoch, absl::Span<const std::byte> bytes) {
    Add(static_cast<uint64_t>(item));
    Add(static_cast<uint64_t>(epoch));
    Add(bytes.size());
    uint64_t word = 0;
    for (; bytes.size() >= sizeof(word); bytes.remove_prefix(sizeof(word))) {
      std::memcpy(&word, bytes.data(), sizeof(word));
      Add(word);
    }
    word = 0;
    if (!bytes.empty()) std::memcpy(&word, bytes.data(), bytes.size());
    Add(word);
  }
  void Add(uint64_t word) {
    state_ = (state_ ^ word) * 0x9E3779B97F4A7C15u;
    state_ ^= state_ >> 32;
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 1;
};

// Of one rank; times in seconds.
struct RankOutcome {
  absl::Status status;
  // As a stream has them, also of plain loaders. Those that are the consumer's: items and their
  // bytes, the time to the first item's arrival, and that of consuming.
  StreamStats stats;
  double seconds = 0;       // from the opening to the end of the last item's consumption
  double half_s = 0;        // until half of the items (rounded down) are consumed
  double wait_s = 0;        // the consumer's, for items
  double later_wait_s = 0;  // of that, after the first item
  int64_t wrong = 0;
  double cpu_s = 0;          // of this process, while items came
  int64_t major_faults = 0;  // of the consumer's thread, meanwhile
  uint64_t item_hash = 0;    // of the items, in their order; of all ranks, in theirs
  // By how much resident memory grew while items came; -1: nobody knows.
  int64_t grown_bytes = -1;
  int64_t grown_rank = -1;  // which rank's it is
  std::string grown_by;     // how grown_bytes is known: MethodName
  std::string cursor;       // of Sluice's own stream
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

// Of the job: sums, but the slowest rank's `seconds`, first item and `half_s`, and the largest
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
