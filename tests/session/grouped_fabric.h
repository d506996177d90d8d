// A fabric whose transports start operations in groups, without tags, as NCCL does: for tests of
// what a session makes of that, without a device.
#ifndef SLUICE_TESTS_SESSION_GROUPED_FABRIC_H_
#define SLUICE_TESTS_SESSION_GROUPED_FABRIC_H_

#include <memory>

#include "session/world.h"
#include "sluice/fabric.h"

namespace sluice::session_test {

// A group begins when all of the one before has ended. Operations between two ranks meet in the
// order in which they are started; lengths that differ are an error.
std::unique_ptr<Fabric> MakeGroupedFabric(std::unique_ptr<Fabric> inner);

// As RunRanks, with such fabrics.
void RunRanksInGroups(int size, const RankBody& body);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_GROUPED_FABRIC_H_
