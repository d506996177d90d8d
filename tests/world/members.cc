// Threads that join worlds.
#include "world/members.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "transport/deadline.h"

namespace sluice::world_test {

WorldOptions MemberOptions(std::shared_ptr<Store> store, const std::vector<RoleSize>& roles,
                           const std::string& role, int rank) {
  WorldOptions options;
  options.own_store = std::move(store);
  options.roles = roles;
  options.role = role;
  options.rank = rank;
  for (const RoleSize& each : roles) {
    if (each.role == role) options.size = each.size;
  }
  options.timeout = kPatience;
  options.lease = kPatience;
  options.wires = "tcp";
  return options;
}

std::vector<WorldOptions> AllOptions(const std::shared_ptr<Store>& store,
                                     const std::vector<RoleSize>& roles) {
  std::vector<WorldOptions> all;
  for (const RoleSize& each : roles) {
    for (int rank = 0; rank < each.size; ++rank) {
      all.push_back(MemberOptions(store, roles, each.role, rank));
    }
  }
  return all;
}

EpochOptions AtLeast(int servers) {
  EpochOptions options;
  options.at_least = {{"server", servers}};
  return options;
}

StoredMember StoredServer(const std::string& id, int rank, int size) {
  StoredMember member;
  member.id = id;
  member.role = "server";
  member.rank = rank;
  member.size = size;
  member.roles = absl::StrCat("server:", size);
  member.host = "node7";
  member.pid = 4711 + rank;
  return member;
}

std::unique_ptr<World> JoinOne(const WorldOptions& options) {
  auto world = World::Join(options);
  EXPECT_TRUE(world.ok()) << world.status();
  return world.ok() ? *std::move(world) : nullptr;
}

std::shared_ptr<Store> ReachStore(const std::string& address) {
  StoreOptions options;
  options.timeout = kPatience;
  auto store = ConnectStore(address, options);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? std::shared_ptr<Store>(*std::move(store)) : nullptr;
}

std::vector<std::unique_ptr<World>> JoinAll(const std::vector<WorldOptions>& options) {
  std::vector<std::unique_ptr<World>> worlds(options.size());
  OnThreads(static_cast<int>(options.size()), [&](int i) {
    worlds[static_cast<size_t>(i)] = JoinOne(options[static_cast<size_t>(i)]);
  });
  return worlds;
}

std::vector<std::unique_ptr<Fabric>> MakeFabrics(
    const std::vector<std::unique_ptr<World>>& worlds) {
  std::vector<std::unique_ptr<Fabric>> fabrics(worlds.size());
  OnThreads(static_cast<int>(worlds.size()), [&](int i) {
    World* const world = worlds[static_cast<size_t>(i)].get();
    if (world == nullptr) return;
    auto fabric = world->MakeFabric();
    EXPECT_TRUE(fabric.ok()) << fabric.status();
    if (fabric.ok()) fabrics[static_cast<size_t>(i)] = *std::move(fabric);
  });
  return fabrics;
}

std::vector<std::unique_ptr<Fabric>> WorldFabrics(int size, const std::string& wires) {
  std::vector<WorldOptions> options = AllOptions(MakeMemoryStore(), {{"member", size}});
  for (WorldOptions& each : options) each.wires = wires;
  return MakeFabrics(JoinAll(options));
}

void ExpectGather(Fabric* fabric) {
  const auto own = static_cast<std::byte>(fabric->rank());
  ASSERT_TRUE(fabric->StartAllGather({&own, 1}).ok());
  std::vector<std::byte> all;
  const Deadline limit(kPatience);
  while (true) {
    const absl::StatusOr<bool> complete = fabric->PollAllGather(&all, nullptr);
    ASSERT_TRUE(complete.ok()) << complete.status();
    if (*complete) break;
    ASSERT_FALSE(limit.Passed()) << "a gather hangs";
    std::this_thread::yield();
  }
  ASSERT_EQ(all.size(), static_cast<size_t>(fabric->size()));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    EXPECT_EQ(all[rank], static_cast<std::byte>(rank));
  }
}

void ExpectGathers(const std::vector<std::unique_ptr<Fabric>>& fabrics) {
  OnThreads(static_cast<int>(fabrics.size()), [&](int i) {
    Fabric* const fabric = fabrics[static_cast<size_t>(i)].get();
    ASSERT_NE(fabric, nullptr);
    EXPECT_EQ(fabric->rank(), i);
    EXPECT_EQ(fabric->size(), static_cast<int>(fabrics.size()));
    ExpectGather(fabric);
  });
}

std::unique_ptr<StoreServer> ServeOnLoopback(const std::string& token) {
  StoreServerOptions options;
  options.token = token;
  auto server = StoreServer::Listen(options);
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

}  // namespace sluice::world_test
