// Runs a text of engine commands and gives back the text with the engine's answers: the language of
// the files in scripts/.
//
//   # a comment, and blank lines                     kept as they are
//   > engine channels=2 max_in_flight=1 slots=2      a new engine; also cost_max=, look_ahead=,
//                                                    lanes=
//   > submit 3 run=1 lane=0 channel=1 stages=FMD slots=2 bytes=64 ops=1
//                                                    bucket 3, all but its number optional; numbers
//                                                    differ, also between runs
//   > next                                           one command, or what blocks admission
//   > all                                            commands until there are none
//   > finish 3 / fail 3 REASON / cancel 3 / poison REASON
//   > announce 3 run=1 lane=0 / close lane=0
//   > freeze run=1 lane=0 / thaw 3 run=1 lane=0      3: the last bucket that is carried out
//   > standing 3 run=1 lane=0
//   > counters / channel 1 / reset / room lane=0 / idle / stall / status
//
// Every other line is an answer, and is replaced.
#ifndef SLUICE_TESTS_ENGINE_ENGINE_SCRIPT_H_
#define SLUICE_TESTS_ENGINE_ENGINE_SCRIPT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sluice {

std::string RunEngineScript(absl::string_view script);

}  // namespace sluice

#endif  // SLUICE_TESTS_ENGINE_ENGINE_SCRIPT_H_
