// Runs a text of engine commands and gives back the text with the engine's answers: the language of
// the files in scripts/.
//
//   # a comment, and blank lines                     kept as they are
//   > engine channels=2 max_in_flight=1 slots=2      a new engine; also cost_max=, look_ahead=
//   > submit 3 channel=1 stages=FMD slots=2 bytes=64 ops=1
//                                                    bucket 3, all but its number optional
//   > next                                           one command, or what blocks admission
//   > all                                            commands until there are none
//   > finish 3 / fail 3 REASON / cancel 3 / poison REASON
//   > counters / channel 1 / reset / room / idle / stall / status
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
