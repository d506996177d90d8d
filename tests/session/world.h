// All ranks of a job as threads of one process, connected by a loopback fabric.
#ifndef SLUICE_TESTS_SESSION_WORLD_H_
#define SLUICE_TESTS_SESSION_WORLD_H_

#include <functional>
#include <memory>
#include <vector>

#include "sluice/accelerator.h"
#include "sluice/fabric.h"

namespace sluice::session_test {

// What a test's body gets on each rank. Over MPI, mpi_tests/ makes one of its own.
struct Rank {
  int rank = 0;
  int size = 1;
  std::unique_ptr<Fabric> fabric;
  // What sessions are made with, beside the fabric.
  std::shared_ptr<Accelerator> accelerator;
  std::shared_ptr<TransportMaker> transport;
  bool direct = false;  // SessionOptions::direct
  bool naive = false;   // its session plans without relays
  // Waits until all ranks that are still in their bodies have called it: outside the session, so
  // that tests can put events on different ranks in order.
  std::function<void()> meet;
};

using RankBody = std::function<void(Rank&)>;

// Whether the environment says that sessions are to copy directly where they can, for another run
// of the same tests: SLUICE_TEST_DIRECT is set.
bool WantsDirect();

// Runs `body` once per rank, each on a thread of its own, and waits for all of them. An exception
// ends its rank's body, and is reported as a failure.
void RunRanks(int size, const RankBody& body);

// The same with fabrics of the caller's, one per rank. Never directly: fabrics see it all.
void RunRanksOn(std::vector<std::unique_ptr<Fabric>> fabrics, const RankBody& body,
                bool direct = false);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_WORLD_H_
