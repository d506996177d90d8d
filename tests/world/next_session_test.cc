// Sessions of epochs: of all members, without one that has left, and with one that has joined.
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "session/rank_memory.h"
#include "session/specs.h"
#include "sluice/session.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "world/members.h"

namespace sluice::world_test {
namespace {

const std::vector<RoleSize>& RolesOfSync() {
  static const auto* const kRoles = new std::vector<RoleSize>{{"trainer", 1}, {"server", 3}};
  return *kRoles;
}

// A session of each world, over which every rank sends something to every other one.
void ExpectTransfers(const std::vector<std::unique_ptr<World>>& worlds) {
  OnThreads(static_cast<int>(worlds.size()), [&](int i) {
    World* const world = worlds[static_cast<size_t>(i)].get();
    SessionOptions options;
    options.timeout = kPatience;
    auto session = NextSession(world, options, AtLeast(1));
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ((*session)->size(), static_cast<int>(worlds.size()));
    EXPECT_EQ((*session)->rank(), i);
    const TransferSpec spec = session_test::AllToAll((*session)->size(), 1 << 10);
    const auto transfer = (*session)->Compile(spec);
    ASSERT_TRUE(transfer.ok()) << transfer.status();
    session_test::RankMemory memory(spec, (*session)->rank());
    memory.Prepare(1);
    auto run = (*session)->Start(*transfer, memory.src(), memory.dst());
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_TRUE(run->Wait().ok());
    EXPECT_EQ(memory.Check(1), "");
    EXPECT_TRUE((*session)->Close().ok());
  });
}

TEST(NextSessionTest, MembersLeaveAndJoin) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  auto worlds = JoinAll(AllOptions(store, RolesOfSync()));
  ExpectTransfers(worlds);
  EXPECT_EQ(worlds[0]->epoch(), 1);
  worlds.erase(worlds.begin() + 2);
  ExpectTransfers(worlds);
  const int64_t epoch = worlds[0]->epoch();
  EXPECT_GT(epoch, 1);
  auto again = World::Join(MemberOptions(store, RolesOfSync(), "server", 1)).value();
  worlds.insert(worlds.begin() + 2, std::move(again));
  ExpectTransfers(worlds);
  EXPECT_GT(worlds[0]->epoch(), epoch);
}

TEST(NextSessionTest, ASessionOfAllMembers) {
  const auto worlds = JoinAll(AllOptions(MakeMemoryStore(), RolesOfSync()));
  OnThreads(static_cast<int>(worlds.size()), [&](int i) {
    const auto session = Session::Create(worlds[static_cast<size_t>(i)].get(), {});
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ((*session)->rank(), i);
    EXPECT_EQ((*session)->size(), 4);
    EXPECT_TRUE((*session)->Close().ok());
  });
}

// Its connections stay, as those of a process that is stopped.
TEST(NextSessionTest, AMemberThatIsStoppedBeforeItsSessionCostsAnotherEpoch) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  auto worlds = JoinAll(AllOptions(store, RolesOfSync()));
  std::unique_ptr<Fabric> stopped;
  OnThreads(4, [&](int i) {
    auto& world = worlds[static_cast<size_t>(i)];
    if (i == 2) {
      auto fabric = world->NextEpoch(AtLeast(1));
      ASSERT_TRUE(fabric.ok()) << fabric.status();
      stopped = *std::move(fabric);
      world = nullptr;  // its lease ends
      return;
    }
    SessionOptions options;
    options.timeout = absl::Seconds(4);  // that a rank may be held up, and is not taken for silent
    const auto session = NextSession(world.get(), options, AtLeast(1));
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ((*session)->size(), 3);
  });
}

TEST(NextSessionTest, ErrorsOfTheEpochAndOfTheSession) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const auto worlds = JoinAll(AllOptions(store, {{"trainer", 1}, {"server", 1}}));
  EXPECT_TRUE(absl::IsInvalidArgument(NextSession(worlds[0].get(), {}, AtLeast(2)).status()));
  OnThreads(2, [&](int i) {
    SessionOptions options;
    options.bucket_bytes = 1;  // too few
    EXPECT_TRUE(absl::IsInvalidArgument(
        NextSession(worlds[static_cast<size_t>(i)].get(), options).status()));
  });
}

}  // namespace
}  // namespace sluice::world_test
