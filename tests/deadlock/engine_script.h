// Runs a text of engine commands and gives back the text with the engine's answers: the language of
// the files in scripts/.
//
//   `# a comment`, and blank lines                 Kept as they are.
//   `> engine channels=2 max_in_flight=1 slots=2`  A new engine. Also look_ahead=, lanes=,
//                                                  rank= (0). With rule=plain or
//                                                  rule=ordered it has a comparison gate.
//   `> rank 1`                                     What follows is for the engine of rank 1.
//   `> submit 3 run=1 lane=0 channel=1 stages=FMD bytes=64 ops=1`
//                                                  Bucket 3, all but its number optional. Numbers
//                                                  differ, also between runs.
//   `> next`                                       One command, or what blocks admission.
//   `> all`                                        Commands until there are none.
//   `> finish 3` / `> fail 3 REASON` / `> poison REASON`
//                                                  The engine's calls of these names.
//   `> announce 3 run=1 lane=0` / `> close lane=0`
//                                                  Likewise.
//   `> freeze run=1 lane=0`                        Likewise.
//   `> thaw 3 run=1 lane=0`                        3: the last bucket that is carried out.
//   `> settle`                                     Goes on until nothing can happen. Obeys all
//                                                  engines, and ends what they command. A move ends
//                                                  when all that have the bucket have begun it.
//   `> standing 3 run=1 lane=0`                    Where the bucket stands.
//   `> counters` / `> channel 1` / `> reset` / `> room lane=0`
//   `> idle` / `> stall` / `> status`
//                                                  What the engine says of itself.
//
// A number is the same bucket in all engines. To finish a stage that is not under way does nothing.
// Every other line is an answer, and is replaced.
#ifndef SLUICE_TESTS_DEADLOCK_ENGINE_SCRIPT_H_
#define SLUICE_TESTS_DEADLOCK_ENGINE_SCRIPT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sluice::deadlock {

std::string RunEngineScript(absl::string_view script);

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_ENGINE_SCRIPT_H_
