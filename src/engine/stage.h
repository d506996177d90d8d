// The stages of a bucket and the one table that says which follows which. Knows nothing of slots.
#ifndef SLUICE_SRC_ENGINE_STAGE_H_
#define SLUICE_SRC_ENGINE_STAGE_H_

#include <cstdint>

namespace sluice {

// The progress of a bucket. A bucket goes through those of kFilling, kMoving, kDraining that its
// StageSet has, in this order.
enum class Stage : uint8_t {
  kWaiting,   // no stage of it has been commanded
  kFilling,   // bytes come into its slot from source memory
  kMoving,    // bytes cross
  kDraining,  // bytes go from its slot to destination memory
  kDone,
  kFailed,
  kCancelled,
};
const char* StageName(Stage stage);

inline bool HasEnded(Stage stage) { return stage >= Stage::kDone; }

// A set of stages: one member's part in a bucket.
using StageSet = uint8_t;
inline constexpr StageSet kStageFill = 1;
inline constexpr StageSet kStageMove = 2;
inline constexpr StageSet kStageDrain = 4;

// The state machine, whole: the stage after `from` for a member whose part is `set`. A bucket that
// fails leaves it for kFailed, from any stage. One that is cancelled leaves kWaiting for
// kCancelled.
Stage NextStage(Stage from, StageSet set);

}  // namespace sluice

#endif  // SLUICE_SRC_ENGINE_STAGE_H_
