// Members of a world as threads of one process, for tests.
#ifndef SLUICE_TESTS_WORLD_MEMBERS_H_
#define SLUICE_TESTS_WORLD_MEMBERS_H_

#include <memory>
#include <string>
#include <vector>

#include "main/on_threads.h"
#include "sluice/fabric.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "world/member.h"

namespace sluice::world_test {

// A limit against hanging, not a time that anything takes.
inline constexpr absl::Duration kPatience = absl::Minutes(3);

// Member `rank` of `role`, where `roles` meet at `store`.
WorldOptions MemberOptions(std::shared_ptr<Store> store, const std::vector<RoleSize>& roles,
                           const std::string& role, int rank);

// The options of all members, in the order of fabric ranks.
std::vector<WorldOptions> AllOptions(const std::shared_ptr<Store>& store,
                                     const std::vector<RoleSize>& roles);

// Those of an epoch that so many members of role "server" are enough for.
EpochOptions AtLeast(int servers);

// What the store has of member `rank` of `size` servers, of process 4711 + rank on node7.
StoredMember StoredServer(const std::string& id, int rank, int size);

// One that joins. A failure is reported, and gives null.
std::unique_ptr<World> JoinOne(const WorldOptions& options);

// A store that is reached at this address, with kPatience. A failure is reported, and gives null.
std::shared_ptr<Store> ReachStore(const std::string& address);

// All worlds of these roles, each joined on a thread of its own, in the order of fabric ranks.
// Failures are reported, and give null.
std::vector<std::unique_ptr<World>> JoinAll(const std::vector<WorldOptions>& options);

// The next fabric of each.
std::vector<std::unique_ptr<Fabric>> MakeFabrics(const std::vector<std::unique_ptr<World>>& worlds);

// Fabrics of a world of `size` members, whose worlds have ended; by rank.
std::vector<std::unique_ptr<Fabric>> WorldFabrics(int size, const std::string& wires = "tcp");

// One rank's part of a gather, whose records are right.
void ExpectGather(Fabric* fabric);

// One gather over all fabrics, on a thread for each, whose records are right.
void ExpectGathers(const std::vector<std::unique_ptr<Fabric>>& fabrics);

// A server on a free port of the loopback interface.
std::unique_ptr<StoreServer> ServeOnLoopback(const std::string& token = "");

}  // namespace sluice::world_test

#endif  // SLUICE_TESTS_WORLD_MEMBERS_H_
