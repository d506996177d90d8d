// The order in which the moves of a channel begin: by ids, whatever holds one of them back.
//
// A transport matches the n-th operation of one end of a link with the n-th of the other. So a move
// that has not begun holds back those of its channel that come after it.
#ifndef SLUICE_SRC_ENGINE_MOVE_ORDER_H_
#define SLUICE_SRC_ENGINE_MOVE_ORDER_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "plan/bucket.h"

namespace sluice {

// A move is one or more rounds of messages, the same ones in all buckets of a channel that move at
// once. The caller asks here how far each move may go, and says how far it went. Nobody else
// decides it; an error says which bucket came out of order.
//
// Moves are known by the first slot of their bucket. Nothing is allocated but in Reserve.
class MoveOrder {
 public:
  static constexpr int kNone = -1;

  // Makes room for channels 0 .. `channels` - 1 and for slots 0 .. `slots` - 1, never for less than
  // before.
  void Reserve(size_t channels, size_t slots);

  // Bucket `id` of `channel`, in `slot`, comes to its move, of which nothing has begun. Internal: a
  // bucket of this id, or of a larger one, has come in the channel before.
  absl::Status Add(size_t slot, int channel, const BucketId& id);

  // How many rounds the move may have begun: as many as the one before it in its channel has. Ended
  // moves hold back nothing.
  int RoundsAllowed(size_t slot) const;
  bool MayBegin(size_t slot) const { return RoundsAllowed(slot) > 0; }

  // The move has begun `rounds` rounds in all. Internal: these are more than it may have.
  absl::Status Begin(size_t slot, int rounds);

  // The slot of the next move of its channel, or kNone.
  int After(size_t slot) const { return moves_[slot].after; }

  // The move is over.
  void End(size_t slot);

 private:
  struct Move {
    BucketId id;
    int channel = kNone;  // kNone: no move is in the slot
    int before = kNone;   // slots of its neighbours among its channel's moves
    int after = kNone;
    int rounds = 0;  // begun
  };
  struct Channel {
    BucketId last_id;  // of the last move that came
    bool any = false;  // has come
    // The slot of the last move that is not over. If that slot has no move of this channel, all are
    // over: End does not touch the channel then, which is seldom in a cache.
    int last = kNone;
  };

  Move& At(int slot) { return moves_[static_cast<size_t>(slot)]; }
  const Move& At(int slot) const { return moves_[static_cast<size_t>(slot)]; }

  std::vector<Move> moves_;  // by slot
  std::vector<Channel> channels_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_ENGINE_MOVE_ORDER_H_
