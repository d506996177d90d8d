// Sessions of worlds: of all members, or of those that are there.
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "sluice/session.h"
#include "sluice/world.h"
#include "transport/deadline.h"

namespace sluice {
namespace {

// So often in a row a member is silent that has not been lost before.
constexpr int kSilencesMax = 3;

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Create(World* world,
                                                         const SessionOptions& options) {
  if (world == nullptr) return absl::InvalidArgumentError("no world");
  absl::StatusOr<std::unique_ptr<Fabric>> fabric = world->MakeFabric();
  if (!fabric.ok()) return fabric.status();
  return Create(*std::move(fabric), options);
}

absl::StatusOr<std::unique_ptr<Session>> NextSession(World* world, const SessionOptions& options,
                                                     const EpochOptions& epoch) {
  const Deadline deadline(epoch.timeout.value_or(absl::InfiniteDuration()));
  EpochOptions left = epoch;
  int silences = 0;
  while (true) {
    if (epoch.timeout.has_value()) left.timeout = deadline.Left();
    absl::StatusOr<std::unique_ptr<Fabric>> fabric = world->NextEpoch(left);
    if (!fabric.ok()) return fabric.status();
    absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(*std::move(fabric), options);
    // Some members may have a session already. They hear of the failure at their first call.
    if (session.ok()) return session;
    if (absl::IsUnavailable(session.status())) continue;
    // A member that is stopped between its fabric and its session keeps its connections. Its lease
    // ends meanwhile, and the next epoch is without it.
    if (absl::IsDeadlineExceeded(session.status()) && ++silences < kSilencesMax) continue;
    return session;
  }
}

}  // namespace sluice
