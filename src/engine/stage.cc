// The transition table.
#include "engine/stage.h"

#include <cstddef>

#include "tensor/check.h"

namespace sluice {
namespace {

constexpr StageSet kSets = 8;

// Not a transition: the set does not have the stage it comes from.
constexpr Stage kNone = Stage::kWaiting;
constexpr Stage kF = Stage::kFilling;
constexpr Stage kM = Stage::kMoving;
constexpr Stage kD = Stage::kDraining;
constexpr Stage kEnd = Stage::kDone;

// clang-format off
constexpr Stage kNext[][kSets] = {
    // set:       -      F      M      FM     D      FD     MD     FMD
    /* waiting */ {kNone, kF,    kM,    kF,    kD,    kF,    kM,    kF},
    /* filling */ {kNone, kEnd,  kNone, kM,    kNone, kD,    kNone, kM},
    /* moving */  {kNone, kNone, kEnd,  kEnd,  kNone, kNone, kD,    kD},
    /* draining */{kNone, kNone, kNone, kNone, kEnd,  kEnd,  kEnd,  kEnd},
};
// clang-format on

}  // namespace

const char* StageName(Stage stage) {
  static constexpr const char* kNames[] = {"waiting", "filling", "moving",   "draining",
                                           "done",    "failed",  "cancelled"};
  return kNames[static_cast<size_t>(stage)];
}

Stage NextStage(Stage from, StageSet set) {
  SLUICE_CHECK(from <= Stage::kDraining && set < kSets, "no stage follows");
  const Stage next = kNext[static_cast<size_t>(from)][set];
  SLUICE_CHECK(next != kNone, "the bucket has no such stage");
  return next;
}

}  // namespace sluice
