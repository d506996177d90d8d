// Runs a text of events for a session's machines and gives back the text with what they did: the
// language of the files in scripts/.
//
//   `# a comment`, and blank lines    Kept as they are.
//   `> send 1 to 1 tag 0 hop 0: ...`  What the events before led to; replaced.
//   `done pack 1, send 2`             An event: everything else. These operations have ended, then
//                                     the machine goes on until nothing moves.
//
// Machines, each on fakes that write one log (fakes/operations_log.h); a new one ends the last:
//   `runner`      Runs of transfers: run_rig.h.
//   `shards`      Pieces of shards that the script makes up: shard_rig.h.
//   `checkpoint`  One rank's part of a load or a save: checkpoint_rig.h.
//
// Events of all machines (of an operation that is not open, this is said instead):
//   `done NAME, NAME ...`                        Operations end well. `done all`: those that are
//                                                open now.
//   `fail NAME CODE: TEXT`                       An operation of the network or of storage ends
//                                                badly.
//   `refuse device|transport|source CODE: TEXT`  The next Start, or allocation, fails.
//   `break device|transport|source CODE: TEXT`   The next Poll fails, as a whole.
//   `parting held=yes`                           Other ranks do not part. With held=no they do.
//   `poison CODE: TEXT`                          A failure from outside.
//   `poll`                                       Nothing has happened.
//   `end`                                        The machine is destroyed.
// With until_read=20 what comes with time alone is waited for, here: that read 20 begins.
#ifndef SLUICE_TESTS_SESSION_SCRIPT_SESSION_SCRIPT_H_
#define SLUICE_TESTS_SESSION_SCRIPT_SESSION_SCRIPT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sluice::session_test {

std::string RunSessionScript(absl::string_view script);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_SCRIPT_SESSION_SCRIPT_H_
