// Keeps reads of one group back until they can go together, so that storage sees long stretches.
#ifndef SLUICE_SRC_SESSION_SHARD_GROUPED_READS_H_
#define SLUICE_SRC_SESSION_SHARD_GROUPED_READS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/types/span.h"
#include "session/shard/read_desk.h"

namespace sluice {

// Groups are numbered, and pieces come in ascending order of groups. A read goes once all reads of
// its group are here. It also goes if its group has the smallest unfinished bucket, or half of the
// slots wait here. So no read waits for a slot that only that read could free.
//
// Thread: one.
class GroupedReads {
 public:
  explicit GroupedReads(int slots) : slots_(static_cast<size_t>(slots)) { kept_.reserve(slots_); }

  // A piece of this group comes later; `reads`: with a read.
  void Announce(int64_t group, bool reads);
  // No further pieces come.
  void AnnounceEnd() { reached_ = INT64_MAX; }

  void Add(int64_t group, const ReadOrder& order);
  bool empty() const { return kept_.empty(); }
  // The reads that go now, valid until the next call: group by group, in the order of storage. A
  // read that begins where the one before ends may join it. `oldest`: the group of the smallest
  // unfinished bucket.
  absl::Span<const ReadOrder> Take(int64_t oldest);
  void Clear();

 private:
  struct Group {
    int64_t number = 0;
    int64_t announced = 0;  // reads
    int64_t added = 0;
  };
  struct Kept {
    int64_t group = 0;
    ReadOrder order;
  };
  Group& Of(int64_t number);
  bool MayGo(int64_t number, int64_t oldest);

  const size_t slots_;
  int64_t reached_ = -1;      // the group announced last
  std::deque<Group> groups_;  // with reads to come; ascending
  std::vector<Kept> kept_;
  std::vector<ReadOrder> orders_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SHARD_GROUPED_READS_H_
