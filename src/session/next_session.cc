// Epochs of a world, until a session of one of them is made.
#include <memory>
#include <utility>

#include "sluice/elastic.h"

namespace sluice {

absl::StatusOr<std::unique_ptr<Session>> NextSession(World* world, const SessionOptions& options,
                                                     const EpochOptions& epoch) {
  while (true) {
    absl::StatusOr<std::unique_ptr<Fabric>> fabric = world->NextEpoch(epoch);
    if (!fabric.ok()) return fabric.status();
    absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(*std::move(fabric), options);
    // Some members may have a session already. They hear of the failure at their first call.
    if (session.ok() || !absl::IsUnavailable(session.status())) return session;
  }
}

}  // namespace sluice
