// One rank's part in whole jobs: compile, run several times, verify every byte. Works over any
// fabric; failures are reported through gtest.
#ifndef SLUICE_TESTS_SESSION_JOB_H_
#define SLUICE_TESTS_SESSION_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "session/rank_memory.h"
#include "session/specs.h"
#include "session/world.h"
#include "sluice/session.h"

namespace sluice::session_test {

// Creates the session of `self`, using up its fabric, with its accelerator and transport. Throws on
// error.
std::unique_ptr<Session> OpenSession(Rank& self, SessionOptions options);

// A transfer and this rank's memory for it.
struct Bound {
  Transfer* transfer = nullptr;
  RankMemory memory;
};
// Compiles `spec`. Throws on error.
Bound CompileBound(Session* session, const TransferSpec& spec,
                   std::optional<uint64_t> style_seed = {});

// Compiles `specs` in order. Throws on error.
std::vector<Transfer*> CompileAll(Session* session, absl::Span<const TransferSpec> specs);

// Opens a session with `options` on each of `size` ranks that are threads, and closes it after
// `body`, unless that has failed.
void RunSessions(int size, const SessionOptions& options,
                 const std::function<void(Rank&, Session*)>& body);

// Starts a run with the values of `round`. Throws on error.
Run StartRun(Session* session, Bound* bound, uint64_t round, const StartOptions& options = {});

// One run with the values of `round`, verified.
Run RunOnce(Session* session, Bound* bound, uint64_t round);

// The same, but rank `late` starts only after all others have gone as far as they can without it.
void RunWithLateRank(Rank& self, Session* session, Bound* bound, uint64_t round, int late);

// The error that another rank's failure brings.
absl::Status AwaitError(Session* session);

// Expects what was held since the last ResetCounters to be within the limits.
void ExpectWithinLimits(const Session& session);

// Creates a session, runs every transfer three times with different data, in turns, and closes it.
void RunJob(Rank& self, const RandomJob& job, uint64_t seed);

// Runs `spec` with one slot, one bucket in flight and buckets of 64 KiB; each rank is late once.
void RunThroughOneSlot(Rank& self, const TransferSpec& spec);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_JOB_H_
