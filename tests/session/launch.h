// Runs in flight: several at a time on one session, each with memory of its own.
#ifndef SLUICE_TESTS_SESSION_LAUNCH_H_
#define SLUICE_TESTS_SESSION_LAUNCH_H_

#include <cstdint>
#include <optional>

#include "session/rank_memory.h"
#include "session/specs.h"
#include "session/world.h"
#include "sluice/session.h"

namespace sluice::session_test {

struct Flight {
  Run run;  // Run(): it could not be started, which was reported
  uint64_t round = 0;
  RankMemory memory;
};

// Starts a run of `transfer` with memory that holds the values of `round`.
Flight Launch(Session* session, Transfer* transfer, uint64_t round,
              std::optional<uint64_t> style_seed = {}, const StartOptions& options = {});

// Waits for it, and verifies every byte.
void Land(Session* session, const Flight& flight);

// One rank's part in a job of many runs of random transfers. All ranks start, and cancel, the same
// runs in the same order, each rank when its dice say so, and wait for them in orders of their own.
// Returns how many were cut short here.
struct Schedule {
  uint64_t seed = 1;
  int runs = 12;
  int cancel_percent = 0;  // of the runs
};
int RunSchedule(Rank& self, const RandomJob& job, const Schedule& schedule);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_LAUNCH_H_
