// A fabric that wraps another one and goes wrong as told: for tests of failure.
#ifndef SLUICE_TESTS_SESSION_FAULTY_FABRIC_H_
#define SLUICE_TESTS_SESSION_FAULTY_FABRIC_H_

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "session/world.h"
#include "sluice/fabric.h"

namespace sluice::session_test {

// Part of every injected error's message.
inline constexpr absl::string_view kInjected = "injected fault";

// What goes wrong on one rank. Counts are from 0; -1: never.
struct FaultPlan {
  uint64_t seed = 1;
  bool shuffle = false;         // events come back in random order
  int delay_polls_max = 0;      // events come up to n polls late
  int64_t failing_event = -1;   // the n-th event carries an error
  int64_t failing_start = -1;   // the n-th batch is refused
  int64_t failing_poll = -1;    // from the n-th on, polls fail
  int64_t failing_gather = -1;  // from the n-th start of a gather on, polling gathers fails
  bool failing_open = false;    // there is no transport
  bool one_thread = false;      // no other thread may use the fabric
};

std::unique_ptr<Fabric> MakeFaultyFabric(std::unique_ptr<Fabric> inner, const FaultPlan& plan);

// Runs `body` on ranks of one node, of which `faulty` (-1: each) has faults.
void RunFaulty(int size, int faulty, const FaultPlan& plan, const RankBody& body);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_FAULTY_FABRIC_H_
