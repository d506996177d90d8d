// Which items a rank of a data stream gets, who reads them, and how they are cut into buckets.
//
// Positions count the items of all epochs in their order: position = epoch * items + place. All is
// arithmetic on what every rank knows, so no rank has to ask another.
#ifndef SLUICE_SRC_PLAN_STREAM_PLAN_H_
#define SLUICE_SRC_PLAN_STREAM_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "plan/bucket.h"
#include "plan/epoch_order.h"

namespace sluice {

// Places first, first + step, ... below `end` of every epoch.
struct PlaceSet {
  int64_t first = 0;
  int64_t step = 1;
  int64_t end = 0;

  bool Has(int64_t place) const {
    return place >= first && place < end && (place - first) % step == 0;
  }
  int64_t count() const { return first < end ? (end - first + step - 1) / step : 0; }
  // The number of members below `place`.
  int64_t CountBelow(int64_t place) const;

  friend bool operator==(const PlaceSet&, const PlaceSet&) = default;
};

// Positions [begin, end).
struct PositionRange {
  int64_t begin = 0;
  int64_t end = 0;
  friend bool operator==(const PositionRange&, const PositionRange&) = default;
};

// Where a stream begins: at `position`, without what is in `done`, ascending and disjoint, above
// it.
struct ResumePoint {
  int64_t position = 0;
  std::vector<PositionRange> done;

  bool IsDone(int64_t at) const;
};

struct StreamPlanOptions {
  int64_t items = 1;
  int64_t epochs = 1;
  bool shuffle = false;
  uint64_t seed = 0;
  bool exchange = true;
  std::vector<PlaceSet> places;  // of each rank
  ResumePoint resume;
};

class StreamPlan {
 public:
  // `rank` is one of those that `options.places` lists; epochs fit kRunBits.
  StreamPlan(const StreamPlanOptions& options, int rank);

  int64_t items() const { return order_.items(); }
  int64_t EpochOf(int64_t position) const { return position / items(); }
  int64_t ItemAt(int64_t position) const {
    return order_.ItemAt(position / items(), position % items());
  }
  // Positions end here.
  int64_t end() const { return items() * options_.epochs; }

  // The first position of this rank at or after `position`; end() if there is none.
  int64_t NextPosition(int64_t position) const;
  // How many positions of this rank are still to come, from the resume point on.
  int64_t CountFromResume() const;

  // The ranks that need this position and share its reading, ascending; this rank is one of them.
  // Valid until the next call.
  absl::Span<const int> Sharers(int64_t position);

  // Who of `sharers` reads an item of `object`. One rank for each object, so that no object is
  // opened twice.
  static int ReaderOf(absl::Span<const int> sharers, int64_t object) {
    return sharers[static_cast<size_t>(object % static_cast<int64_t>(sharers.size()))];
  }

  // The bucket of a piece. Ascends with position, then piece.
  static constexpr int64_t kPiecesMax = int64_t{1} << kPhaseBits;
  static constexpr int64_t kItemsMax = int64_t{1} << (kWindowBits + kRoundBits);
  BucketId IdOf(int64_t position, int64_t piece, int reader) const;

 private:
  StreamPlanOptions options_;
  int rank_;
  EpochOrder order_;
  // Ranks by equal place sets.
  struct Group {
    PlaceSet places;
    std::vector<int> ranks;
  };
  std::vector<Group> groups_;
  std::vector<int> sharers_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_STREAM_PLAN_H_
