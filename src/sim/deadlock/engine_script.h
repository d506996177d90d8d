// Runs a text of engine commands and gives back the text with the engine's answers: the language of
// the files in scripts/.
//
//   # a comment, and blank lines                     kept as they are
//   > engine channels=2 max_in_flight=1 slots=2      a new engine; also cost_max=, look_ahead=,
//                                                    lanes=, rank= (0), and rule=plain or
//                                                    rule=ordered for a comparison gate
//   > rank 1                                         what follows is for the engine of rank 1
//   > submit 3 run=1 lane=0 channel=1 stages=FMD slots=2 bytes=64 ops=1
//                                                    bucket 3, all but its number optional; numbers
//                                                    differ, also between runs
//   > next                                           one command, or what blocks admission
//   > all                                            commands until there are none
//   > finish 3 / fail 3 REASON / cancel 3 / poison REASON
//   > announce 3 run=1 lane=0 / close lane=0
//   > freeze run=1 lane=0 / thaw 3 run=1 lane=0      3: the last bucket that is carried out
//   > settle                                         goes on until nothing can happen: obeys all
//                                                    engines, and ends what they command, a move
//                                                    when all that have the bucket have begun it
//   > standing 3 run=1 lane=0
//   > counters / channel 1 / reset / room lane=0 / idle / stall / status
//
// A number is the same bucket in all engines. To finish a stage that is not under way does nothing.
// Every other line is an answer, and is replaced.
#ifndef SLUICE_SRC_SIM_DEADLOCK_ENGINE_SCRIPT_H_
#define SLUICE_SRC_SIM_DEADLOCK_ENGINE_SCRIPT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sluice::deadlock {

std::string RunEngineScript(absl::string_view script);

}  // namespace sluice::deadlock

#endif  // SLUICE_SRC_SIM_DEADLOCK_ENGINE_SCRIPT_H_
