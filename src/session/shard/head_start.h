// Lets the first item of a stream go first, so that nothing that is read ahead holds it up.
#ifndef SLUICE_SRC_SESSION_SHARD_HEAD_START_H_
#define SLUICE_SRC_SESSION_SHARD_HEAD_START_H_

#include <algorithm>
#include <cstdint>

namespace sluice {

// Storage shares its bandwidth among all reads that it has. So the first of 500 reads that begin at
// once may end with the last. Reads ahead of a rank wait until its first item is there, for at most
// kLongestNs. A first item that takes longer is mostly latency, which costs no bandwidth.
//
// Behind latency all these reads end together, and all their messages would be sent together. So
// messages of other items wait as well, for at most kLongestForSendsNs. No rank waits for another
// in a circle. A rank that another waits for takes part in the other's first item. So that rank
// waits for this item or for an earlier one. Messages that wait here hold back the later moves of
// their channel (MoveOrder), none of which is the first item's.
//
// Items are numbered from 0, the first one this rank takes part in, whoever reads it.
class HeadStart {
 public:
  // Longer than a piece of 1 MiB takes at 300 MB/s, and than the first item's round trip in a node.
  // Next to nothing beside how long a stream lasts.
  static constexpr int64_t kLongestNs = 4'000'000;
  // Longer than 1 MiB takes to three other ranks that share two cores, and touch the memory for the
  // first time. A stream loses this time once, if its first read takes longer than the others.
  static constexpr int64_t kLongestForSendsNs = 20'000'000;

  // 0: none.
  explicit HeadStart(int64_t longest_ns, int64_t longest_for_sends_ns = 0)
      : longest_ns_(longest_ns),
        longest_for_sends_ns_(longest_for_sends_ns),
        over_(longest_ns == 0),
        sends_free_(longest_for_sends_ns == 0) {}

  // May a piece of `item` begin now? Asked in the order of items; the time counts from the first
  // question on.
  bool MayBegin(int64_t item, int64_t now_ns);

  // May messages of `item` be sent now? The time counts from the first question about another item
  // than the first on.
  bool MaySend(int64_t item, int64_t now_ns);

  // A piece of `item` has been through all its stages.
  void Ended(int64_t item);

  // Something waits for the first item before it begins.
  bool holds() const { return holds_; }
  // When what waits may go on at the latest; INT64_MAX if nothing waits.
  int64_t end_ns() const {
    return std::min(holds_ ? begin_ns_ + longest_ns_ : INT64_MAX,
                    holds_sends_ ? sends_ns_ + longest_for_sends_ns_ : INT64_MAX);
  }

 private:
  const int64_t longest_ns_;
  const int64_t longest_for_sends_ns_;
  bool over_;
  bool sends_free_;
  bool holds_ = false;  // something has been told to wait
  bool holds_sends_ = false;
  int64_t begin_ns_ = -1;
  int64_t sends_ns_ = -1;  // when messages were first told to wait
  int64_t under_way_ = 0;  // pieces of the first item
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SHARD_HEAD_START_H_
