// Plans a data stream: which items a rank gets, who reads them, and how they are cut into buckets.
//
// All is arithmetic on what every rank knows, so no rank has to ask another.
#ifndef SLUICE_SRC_PLAN_SHARD_STREAM_PLAN_H_
#define SLUICE_SRC_PLAN_SHARD_STREAM_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "plan/bucket.h"
#include "plan/place_set.h"
#include "plan/released.h"
#include "plan/shard/epoch_order.h"

namespace sluice {

struct StreamPlanOptions {
  int64_t items = 1;
  int64_t epochs = 1;
  bool shuffle = false;
  uint64_t seed = 0;
  int64_t block_items = 1;  // see EpochOrder
  bool exchange = true;
  std::vector<PlaceSet> places;  // of each rank
  // Earlier releases, as MergeCursors makes them: they do not come again.
  std::vector<ReleasedLayer> released;
};

class StreamPlan {
 public:
  // `rank` is one of those that `options.places` lists; epochs fit kRunBits, and all positions are
  // below kPositionsMax.
  StreamPlan(const StreamPlanOptions& options, int rank);

  int64_t items() const { return order_.items(); }
  int64_t EpochOf(int64_t position) const { return position / items(); }
  int64_t ItemAt(int64_t position) const {
    return order_.ItemAt(position / items(), position % items());
  }
  // Which block of all epochs' the position is in: ascends with positions, from 0 on.
  int64_t BlockOf(int64_t position) const {
    const int64_t epoch = position / items();
    return epoch * order_.blocks() + order_.BlockAt(epoch, position % items());
  }
  // Positions end here.
  int64_t end() const { return items() * options_.epochs; }

  // The first position of this rank, at or after `position`, that was not released before; end() if
  // there is none.
  int64_t NextPosition(int64_t position) const;
  // How many positions of this rank were not released before.
  int64_t CountToCome() const { return to_come_; }

  const PlaceSet& places() const { return options_.places[static_cast<size_t>(rank_)]; }
  const Released& released() const { return released_; }
  // Each place of which something was released before is some rank's of now.
  bool covers_released() const { return covers_released_; }
  const std::vector<ReleasedLayer>& released_layers() const { return options_.released; }

  // The ranks that need this position and share its reading, ascending; this rank is one of them.
  // Valid until the next call.
  absl::Span<const int> Sharers(int64_t position);

  // The one of `sharers` that reads an item of `object`. One rank reads an object, so that no
  // object is opened twice.
  static int ReaderOf(absl::Span<const int> sharers, int64_t object) {
    return sharers[static_cast<size_t>(object % static_cast<int64_t>(sharers.size()))];
  }

  // The one of `sharers`, those of `position`, that makes its item if any of them can. All make
  // equal shares of the items that they share, and of each stretch.
  int MakerOf(int64_t position, absl::Span<const int> sharers) const;

  // The bucket of a piece. Ascends with position, then piece.
  static constexpr int64_t kPiecesMax = int64_t{1} << kPhaseBits;
  static constexpr int64_t kItemsMax = int64_t{1} << (kWindowBits + kRoundBits);
  BucketId IdOf(int64_t position, int64_t piece, int reader) const;

 private:
  StreamPlanOptions options_;
  int rank_;
  EpochOrder order_;
  Released released_;
  int64_t to_come_ = 0;
  bool covers_released_ = true;
  // Ranks by equal place sets.
  struct Group {
    PlaceSet places;
    std::vector<int> ranks;
  };
  std::vector<Group> groups_;
  std::vector<int> sharers_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_SHARD_STREAM_PLAN_H_
