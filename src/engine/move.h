// The steps by which one member moves a bucket: one place decides which messages and copies come
// next.
//
// A member gives its contribution, or adds up those of others and gives on their sum. Then it makes
// the result what its children get, or receives the result from its parent, and forwards it. Each
// member has some of these steps, in this order. The runner and the simulator ask NextAction what
// is next, and do what it says.
//
// Contributions are added in the order of their numbers, whenever they come. There is one
// exception, `own_goes_last`. A fold leaves the order to the transport, which keeps to it.
//
// A *round* is what a link's far end counts as one message: a send, a receive, or a send to all
// children at once. A transport matches the messages of a link by their order. So the buckets of a
// channel begin each round in the channel's order (engine/move_order.h). A fold counts as many
// rounds as its receives would one by one. So both ends of each link count alike, and so do two
// buckets of a channel of which only one folds.
#ifndef SLUICE_SRC_ENGINE_MOVE_H_
#define SLUICE_SRC_ENGINE_MOVE_H_

#include <cstdint>

#include "plan/plan.h"

namespace sluice {

// A bucket's move as this member sees it. No field changes during the move.
struct MoveShape {
  int32_t added = 0;     // contributions that this member adds up, numbered from 0; 0: it adds none
  int32_t own = -1;      // which of these is its own; -1: none
  int32_t per_sum = 1;   // how many, one after another, make one sum; divides `added`
  int32_t children = 0;  // who get the result from this member
  bool gives = false;    // it sends its contribution to who adds
  bool folds = false;  // it receives all contributions at once, as their sum; `added` is `per_sum`
  bool own_lies = false;  // its own contribution can be added from source memory
  // Its own contribution may be added after the next one where it begins a sum and lies in source
  // memory. The next one is then received in its place, which saves a copy and gives the same bits.
  bool own_goes_last = false;
  bool gives_sum = false;   // it sends the sum to who adds next
  bool casts = false;       // the result has another type than the contributions
  bool has_parent = false;  // it receives the result
};

// The shape as far as the plan knows it: all but `folds`, `own_lies` and `casts`.
MoveShape ShapeOf(const Plan& plan, const Bucket& bucket);

enum class MoveKind : uint8_t {
  kGive,     // send this member's contribution to who adds it
  kTake,     // receive contribution `number`
  kPackOwn,  // copy this member's own contribution from source memory
  kFold,     // receive all contributions as their sum
  kAdd,      // add contribution `number`; a sum that is complete is passed up to the next level
  kGiveSum,  // send the sum to who adds next
  kCast,     // make the result what the children get
  kReceive,  // receive the result from the parent
  kForward,  // send the result to all children
  kWait,     // nothing, until more rounds are allowed
  kOver,     // nothing: the move is over
};

struct MoveAction {
  MoveKind kind = MoveKind::kOver;
  int32_t number = 0;  // kTake, kPackOwn, kAdd: of the contribution
  // kTake, kPackOwn: into the accumulator, which is empty. Otherwise beside it, to be added, or (of
  // a fold) to be read by the transport.
  bool first = false;
  // kAdd: what is added is this member's own contribution, in source memory. Otherwise it is what
  // was taken or packed beside the accumulator.
  bool own = false;

  friend bool operator==(const MoveAction&, const MoveAction&) = default;
};

// The steps of a move, in order.
enum class MoveStep : uint8_t { kGive, kCollect, kGiveSum, kCast, kReceive, kForward, kOver };

// How far a move has come. A move begins with MoveState().
struct MoveState {
  MoveStep step = MoveStep::kGive;
  bool beside = false;  // kCollect: contribution `number` lies beside the accumulator
  int32_t number = 0;   // kCollect: the contribution whose turn it is
  int32_t rounds = 0;   // begun so far
};

// Returns the move's next action, which counts as begun from then on. To be called when all that
// earlier actions began has ended, and again at once if an action began nothing. After kWait it may
// be called whenever more rounds may be allowed. `rounds_max`: how many rounds the move may have
// begun by now; it never falls. Allocates nothing; any thread.
MoveAction NextAction(const MoveShape& shape, int32_t rounds_max, MoveState* state);

}  // namespace sluice

#endif  // SLUICE_SRC_ENGINE_MOVE_H_
