// Runs that fail while every rank lives and polls: after Close all memory is free, soon.
#ifndef SLUICE_TESTS_SESSION_FAILED_CLOSE_H_
#define SLUICE_TESTS_SESSION_FAILED_CLOSE_H_

#include "session/world.h"

namespace sluice::session_test {

// How the last rank fails, when the others have operations under way with it.
enum class Failing {
  kNeverStarts,  // its start of the run is refused: it has not met any message of it
  kLateMemory,   // it has met none for the tensors that it has no memory for
};

// The session's timeout is far longer than this takes where Close does not wait for it. Uses up the
// fabric of `self`; failures are reported through gtest.
void FailAndClose(Rank& self, Failing failing, bool progress_thread);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_FAILED_CLOSE_H_
