// Which announced message meets which receive: of one transport, at its receiver.
#ifndef SLUICE_SRC_TRANSPORT_UCX_UCX_MEETINGS_H_
#define SLUICE_SRC_TRANSPORT_UCX_UCX_MEETINGS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace sluice {

// A pure state machine. Where one rank's messages of one tag wait, no receive for them waits, and
// the other way round. Thread: one at a time.
class UcxMeetings {
 public:
  // Announcements of one rank that may wait. Senders hold no more operations than this.
  static constexpr int kMaxAnnounced = 1 << 18;

  struct Announced {
    int src = 0;
    int tag = 0;
    uint64_t bytes = 0;
    uint64_t send = 0;  // by which the sender knows it
  };

  // So many ranks there are.
  explicit UcxMeetings(int ranks) : announced_(static_cast<size_t>(ranks)) {}

  // The receive `slot` looks for the first message of `src` with `tag`. True, with the message, if
  // one has been announced. Otherwise the receive waits.
  bool Receive(int src, int tag, int slot, Announced* message);

  // The receive that the message meets, which waits no more; kWaits: none. kRefused: the message
  // has not been taken, for its rank has announced too much.
  static constexpr int kWaits = -1;
  static constexpr int kRefused = -2;
  int Announce(const Announced& message);

  // Takes all receives that wait, or those from `src`, and appends them to `slots`.
  static constexpr int kAllRanks = -1;
  void TakeReceives(int src, std::vector<int>* slots);

  // Forgets what `src` has announced.
  void ForgetAnnounced(int src);

 private:
  struct Node {
    Announced message;
    int slot = -1;  // of a receive; -1: it is a message
    int next = -1;
  };
  struct Line {
    int first = -1;
    int last = -1;
  };

  static uint64_t LineOf(int src, int tag) {
    return static_cast<uint64_t>(src) << 32 | static_cast<uint32_t>(tag);
  }
  static int RankOf(uint64_t line) { return static_cast<int>(line >> 32); }
  // The first one of a line leaves; a line without any is forgotten.
  Node TakeFirst(absl::flat_hash_map<uint64_t, Line>::iterator line);
  void Append(uint64_t line, const Node& node);

  std::vector<Node> nodes_;
  int unused_ = -1;  // the first of `nodes_` that is in no line
  absl::flat_hash_map<uint64_t, Line> lines_;
  std::vector<int> announced_;  // by rank: messages that wait
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_UCX_UCX_MEETINGS_H_
