// The steps of a move, one after another.
#include "engine/move.h"

#include <cstddef>

namespace sluice {
namespace {

constexpr MoveAction kWaiting = {.kind = MoveKind::kWait};

bool BeginRounds(int32_t rounds, int32_t rounds_max, MoveState* state) {
  if (rounds > rounds_max - state->rounds) return false;
  state->rounds += rounds;
  return true;
}

// The one message of a step, after which comes `next`.
MoveAction Message(MoveKind kind, MoveStep next, int32_t rounds_max, MoveState* state) {
  if (!BeginRounds(1, rounds_max, state)) return kWaiting;
  state->step = next;
  return {.kind = kind};
}

// True if this member's own contribution begins a sum, and is added after the next one.
bool OwnGoesLast(const MoveShape& shape) {
  return shape.own_goes_last && shape.own_lies && shape.own >= 0 && shape.per_sum > 1 &&
         shape.own % shape.per_sum == 0;
}

// All contributions at once. This member's own has to lie as the others do.
MoveAction CollectAtOnce(const MoveShape& shape, int32_t rounds_max, MoveState* state) {
  const bool contributes = shape.own >= 0;
  if (contributes && !shape.own_lies && !state->beside) {
    state->beside = true;
    return {.kind = MoveKind::kPackOwn, .number = shape.own};
  }
  if (!BeginRounds(shape.added - (contributes ? 1 : 0), rounds_max, state)) return kWaiting;
  state->number = shape.added;
  return {.kind = MoveKind::kFold};
}

// The contribution whose turn it is: taken or packed, then added unless a sum begins with it.
MoveAction Collect(const MoveShape& shape, int32_t rounds_max, MoveState* state) {
  const bool own_goes_last = OwnGoesLast(shape);
  if (own_goes_last && state->number == shape.own) ++state->number;
  const int32_t number = state->number;
  const bool in_place_of_own = own_goes_last && number == shape.own + 1;
  if (state->beside) {
    state->beside = false;
    ++state->number;
    return {.kind = MoveKind::kAdd, .number = number, .own = in_place_of_own};
  }
  const bool begins = number % shape.per_sum == 0;
  const bool first = begins || in_place_of_own;
  if (number == shape.own && shape.own_lies && !begins) {
    ++state->number;
    return {.kind = MoveKind::kAdd, .number = number, .own = true};
  }
  if (number != shape.own && !BeginRounds(1, rounds_max, state)) return kWaiting;
  // The first contribution of a sum has nothing to be added to.
  if (begins) {
    ++state->number;
  } else {
    state->beside = true;
  }
  const MoveKind kind = number == shape.own ? MoveKind::kPackOwn : MoveKind::kTake;
  return {.kind = kind, .number = number, .first = first};
}

}  // namespace

MoveShape ShapeOf(const Plan& plan, const Bucket& bucket) {
  const Channel& channel = plan.channels[static_cast<size_t>(bucket.channel)];
  MoveShape shape;
  shape.children = channel.child_count;
  shape.has_parent = channel.parent.peer >= 0;
  const bool adds = AddsForOwner(bucket.role);
  shape.gives = Has(bucket.role, Role::kContributor) && !adds;
  shape.gives_sum = adds;
  if (channel.added_count == 0) return shape;
  shape.added = channel.added_count;
  // After the first step the sum of the steps before comes first.
  if (channel.own_contribution >= 0) {
    shape.own = channel.own_contribution - channel.first_added + (channel.step > 0 ? 1 : 0);
  }
  const Level& level = plan.levels[static_cast<size_t>(channel.first_level)];
  shape.per_sum = channel.step_count > 1 ? channel.added_count : static_cast<int32_t>(level.size);
  // Max and min keep the first of two equal zeros, so these do not commute.
  shape.own_goes_last = level.op != ReduceOp::kMax && level.op != ReduceOp::kMin;
  return shape;
}

MoveAction NextAction(const MoveShape& shape, int32_t rounds_max, MoveState* state) {
  switch (state->step) {
    case MoveStep::kGive:
      if (shape.gives) return Message(MoveKind::kGive, MoveStep::kCollect, rounds_max, state);
      [[fallthrough]];
    case MoveStep::kCollect:
      state->step = MoveStep::kCollect;
      if (state->number < shape.added) {
        return shape.folds ? CollectAtOnce(shape, rounds_max, state)
                           : Collect(shape, rounds_max, state);
      }
      [[fallthrough]];
    case MoveStep::kGiveSum:
      state->step = MoveStep::kGiveSum;
      if (shape.gives_sum) return Message(MoveKind::kGiveSum, MoveStep::kCast, rounds_max, state);
      [[fallthrough]];
    case MoveStep::kCast:
      if (shape.casts) {
        state->step = MoveStep::kReceive;
        return {.kind = MoveKind::kCast};
      }
      [[fallthrough]];
    case MoveStep::kReceive:
      state->step = MoveStep::kReceive;
      if (shape.has_parent) {
        return Message(MoveKind::kReceive, MoveStep::kForward, rounds_max, state);
      }
      [[fallthrough]];
    case MoveStep::kForward:
      state->step = MoveStep::kForward;
      if (shape.children > 0)
        return Message(MoveKind::kForward, MoveStep::kOver, rounds_max, state);
      [[fallthrough]];
    case MoveStep::kOver:
      state->step = MoveStep::kOver;
      return {.kind = MoveKind::kOver};
  }
  return {.kind = MoveKind::kOver};
}

}  // namespace sluice
