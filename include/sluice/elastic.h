// Sessions for worlds whose members come and go between transfers: one for each epoch.
//
//   sluice::EpochOptions epoch;
//   epoch.at_least = {{"server", 1}};
//   while (true) {
//     auto session = sluice::NextSession(world.get(), {}, epoch);
//     if (!session.ok()) return session.status();
//     // Connect, and run versions. Go round again when a run fails because a member is lost, or
//     // when the epoch ends for those that have joined. Close the session before. Where Close
//     // fails, leave the memory as it is, and take other memory for the next version.
//   }
#ifndef SLUICE_ELASTIC_H_
#define SLUICE_ELASTIC_H_

#include <memory>

#include "absl/status/statusor.h"
#include "sluice/session.h"
#include "sluice/world.h"

namespace sluice {

// A session of the members that are there now: World::NextEpoch, and Session::Create over its
// fabric. Collective, as NextEpoch. A member that is lost before the session is made costs another
// epoch, and is no error. So does one that is silent for a session's timeout, twice at most. The
// session may outlive the world. Its ranks are those of world->epoch_members().
// Errors are those of NextEpoch and of Create. Thread: the world's, and then the session's.
absl::StatusOr<std::unique_ptr<Session>> NextSession(World* world, const SessionOptions& options,
                                                     const EpochOptions& epoch = {});

}  // namespace sluice

#endif  // SLUICE_ELASTIC_H_
