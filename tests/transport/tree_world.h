// The ranks of a job of TreeGathers, messages between them in memory, and a clock.
#ifndef SLUICE_TESTS_TRANSPORT_TREE_WORLD_H_
#define SLUICE_TESTS_TRANSPORT_TREE_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/tree_gather.h"

namespace sluice {

// A rank that polls takes what has come to it, in an order that depends on the seed, but from each
// sender in the order in which it was sent. Like a network, it is busy where a message to a rank
// has not been taken, if `one_each`.
class TreeWorld {
 public:
  struct Options {
    size_t max_message_bytes = TreeGather::kDefaultMaxMessageBytes;
    bool one_each = true;
    uint32_t seed = 1;
  };
  explicit TreeWorld(int size) : TreeWorld(size, Options()) {}
  TreeWorld(int size, const Options& options);

  int size() const { return static_cast<int>(ranks_.size()); }
  int64_t now_ns = 1'000'000'000'000;

  void Start(int rank, const std::vector<std::byte>& record);
  // Takes at most `limit` messages, sends what is to be sent, and polls, if under way. Like a
  // fabric, not true before others have taken what they need.
  absl::StatusOr<bool> Poll(int rank, int limit = 1 << 30);
  // Has all ranks poll until nothing moves. The first error of any of them.
  absl::Status Settle(const std::vector<int>& ranks);

  // What the last true Poll of a rank brought, and the last other one.
  const std::vector<std::byte>& all(int rank) const { return all_[static_cast<size_t>(rank)]; }
  const std::vector<int>& missing(int rank) const { return missing_[static_cast<size_t>(rank)]; }
  bool is_under_way(int rank) const { return tree(rank).is_under_way(); }
  TreeGather& tree(int rank) const { return *ranks_[static_cast<size_t>(rank)]; }

  // Messages that a rank has sent, and those of them that others need.
  int sent(int rank) const { return sent_[static_cast<size_t>(rank)]; }
  int needed(int rank) const { return needed_[static_cast<size_t>(rank)]; }
  // Messages that no one has taken.
  size_t untaken(int rank) const { return inboxes_[static_cast<size_t>(rank)].size(); }
  size_t longest_message() const { return longest_message_; }

 private:
  struct Message {
    int src;
    bool is_needed;
    std::vector<std::byte> bytes;
  };
  absl::Status TakeOne(int rank);
  // Ranks that have not taken what they need of this one.
  std::vector<int> Takers(int src) const;

  const Options options_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<TreeGather>> ranks_;
  std::vector<std::deque<Message>> inboxes_;
  std::vector<std::vector<std::byte>> all_;
  std::vector<std::vector<int>> missing_;
  std::vector<int> sent_;
  std::vector<int> needed_;
  std::vector<int> owed_;  // needed ones that have not been taken, by sender
  size_t longest_message_ = 0;
  bool moved_ = false;
};

// A record of `bytes`, another one for each rank and gather.
std::vector<std::byte> TreeRecord(int rank, int gather, size_t bytes);
std::vector<std::byte> TreeRecords(int size, int gather, size_t bytes);

// 0, 1, .. size - 1, without those that are left out.
std::vector<int> RanksBut(int size, const std::vector<int>& out);

}  // namespace sluice

#endif  // SLUICE_TESTS_TRANSPORT_TREE_WORLD_H_
