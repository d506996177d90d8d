// A rank's report of a bucket: the question, the answer, and both in words.
#ifndef SLUICE_SRC_SESSION_PEERS_BUCKET_REPORT_H_
#define SLUICE_SRC_SESSION_PEERS_BUCKET_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "engine/stage.h"
#include "plan/bucket.h"
#include "tensor/error_text.h"

namespace sluice {

struct BucketQuestion {
  BucketId id;       // with the asker's run
  int transfer = 0;  // the number of the transfer that the asker runs as this run
  int lane = 0;      // the asker's, as the session counts them; not looked at here
  // The number of the agreement that the asker waits in, which it asks about. `id` then has the
  // last run that the asker has started. 0: it asks about the bucket.
  int64_t agreement = 0;

  friend bool operator==(const BucketQuestion&, const BucketQuestion&) = default;
};

enum class BucketState : uint8_t {
  kUnknown,          // the rank is there and has nothing to say of buckets
  kRunNotStarted,    // the last run it has started is `last_run`
  kOtherTransfer,    // it has started the run, as the transfer `transfer`
  kNotFed,           // it has not come to it yet
  kWaitsForChannel,  // not admitted: its channel is full
  kWaitsForBudget,   // not admitted: no slot is to be had
  kWaitsForMemory,   // not admitted: the memory of `tensor` has not been supplied
  kInStage,          // it stands in `stage`, which is any but kWaiting
  kNotCalled,        // it has not come to the agreement
  kCalled,           // it has
};

struct BucketReport {
  BucketState state = BucketState::kUnknown;
  Stage stage = Stage::kDone;      // for kInStage
  int64_t last_run = 0;            // for kRunNotStarted; 0: none
  int transfer = 0;                // for kOtherTransfer
  std::string tensor;              // for kWaitsForMemory; cut to kMaxTensorNameBytes on its way
  std::optional<BucketId> oldest;  // the rank's own smallest unfinished bucket, if it has one
  int64_t moves = 0;               // how often the rank has got on, since it began
  std::string call;                // that it waits in, for other ranks; empty: none
  // It has not begun what it is asked about, and its caller alone can. False in a call that waits
  // for other ranks: these might wait for each other.
  bool is_late = false;
};

// A rank that keeps others waiting: it does not answer. `hops`: how many ranks pass on that it does
// not; 0 says it the one that asked it.
struct Silence {
  int rank = -1;  // -1: none
  int hops = 0;
};

// How often a rank had got on when it was last heard of.
struct Moves {
  int rank = -1;  // -1: none
  int64_t count = 0;
};

// A rank that has said that it is late, and how often it had said so.
struct Lateness {
  int rank = -1;  // -1: none
  int64_t times = 0;
};

// The text that follows "rank 7 ", such as "has not admitted it: it waits for the budget". Then may
// come "its oldest bucket is run 3 window 0 round 2 phase 1, rank 7 -> 3, n 0", and "held up by
// rank 3, which does not answer".
ErrorText DescribeReport(const BucketQuestion& question, const BucketReport& report,
                         const Silence& silence);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_PEERS_BUCKET_REPORT_H_
