// Lets the first item of a stream begin alone, so that nothing that is read ahead holds it up.
#ifndef SLUICE_SRC_SESSION_HEAD_START_H_
#define SLUICE_SRC_SESSION_HEAD_START_H_

#include <cstdint>

namespace sluice {

// Storage shares its bandwidth among all reads that it has, so the first of 500 that begin at once
// may end with the last. What a rank reads ahead waits until its first item is there, or for a
// limited time where that one takes long, as then most of it is latency, which costs no bandwidth.
//
// Items are numbered from 0, the first one this rank takes part in, whoever reads it.
class HeadStart {
 public:
  // Longer than a piece of 1 MiB takes at 300 MB/s, and than the first item's round trip in a node;
  // next to nothing beside what a stream lasts, or the latency that makes reading ahead worth it.
  static constexpr int64_t kLongestNs = 4'000'000;

  // 0: none.
  explicit HeadStart(int64_t longest_ns) : longest_ns_(longest_ns), over_(longest_ns == 0) {}

  // May a piece of `item` begin now? Asked in the order of items; the time counts from the first
  // question on.
  bool MayBegin(int64_t item, int64_t now_ns);

  // A piece of `item` has been through all its stages.
  void Ended(int64_t item);

  // Something waits for the first item.
  bool holds() const { return holds_; }
  // When it may begin at the latest; INT64_MAX if nothing waits.
  int64_t end_ns() const { return holds_ ? begin_ns_ + longest_ns_ : INT64_MAX; }

 private:
  const int64_t longest_ns_;
  bool over_;
  bool holds_ = false;  // something has been told to wait
  int64_t begin_ns_ = -1;
  int64_t under_way_ = 0;  // pieces of the first item
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_HEAD_START_H_
