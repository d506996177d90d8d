// Runs that get their memory late, or never, and are cancelled at random.
#ifndef SLUICE_TESTS_SESSION_CANCELLED_RUNS_H_
#define SLUICE_TESTS_SESSION_CANCELLED_RUNS_H_

#include <cstdint>

#include "session/specs.h"
#include "session/world.h"

namespace sluice::session_test {

// One rank's part. All ranks start and cancel the same runs in the same order. Each supplies memory
// when its own dice say so, stays away now and then, and verifies each tensor when it is reported.
// Then all transfers of `job` run once more. Returns how many runs were cut short here.
int RunCancelled(Rank& self, const RandomJob& job, uint64_t seed);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_CANCELLED_RUNS_H_
