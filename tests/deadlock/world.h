// Plays a job in one random order of events, and says whether it came to its end.
//
// Every rank starts its runs, feeds its gate, and carries out what the gate commands. A gate is fed
// in full when the rank starts a run, unless the gate is the engine. Fills and drains end in any
// order. A move is a rendezvous: it ends at a member when all members have begun it. In a reduction
// the member must also have had its exchanges. Some rules are there for comparison. Under them the
// job runs without its ordered transport and its consumers, so that what stalls stalls because of
// admission.
#ifndef SLUICE_TESTS_DEADLOCK_WORLD_H_
#define SLUICE_TESTS_DEADLOCK_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "deadlock/job.h"
#include "deadlock/random.h"
#include "deadlock/rules.h"

namespace sluice::deadlock {

struct WorldEvent {
  enum class Kind : uint8_t {
    kStart,     // a rank starts its next run
    kFeed,      // and feeds its next bucket
    kFinish,    // a stage ends
    kExchange,  // two members of a reduction meet
    kTake,      // a consumer takes what comes next
  };
  Kind kind = Kind::kStart;
  int rank = 0;
  size_t index = 0;  // of the bucket among the rank's; kStart, kTake: 0
};

struct Outcome {
  bool complete = false;
  int64_t events = 0;
  int peak_slots = 0;              // at any rank
  std::vector<WorldEvent> trace;   // as asked for
  std::vector<std::string> waits;  // as asked for, of an incomplete job: who waits for what
};

enum class Keep : uint8_t { kOutcome, kTrace };

// Equal arguments give equal outcomes.
Outcome Play(const Job& job, const Rules& rules, Random order, Keep keep = Keep::kOutcome);

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_WORLD_H_
