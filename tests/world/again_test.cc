// Worlds of one job, one after another at one address. A member comes to the next one while others
// are still in the one before.
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/fabric.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "transport/deadline.h"
#include "world/members.h"
#include "world/store/free_port.h"
#include "world/store/store_tools.h"

namespace sluice::world_test {
namespace {

constexpr int kSize = 3;
constexpr int kRounds = 4;

class WorldAgainTest : public testing::TestWithParam<std::tuple<bool, int>> {
 protected:
  // Whether rank 0 serves the store, and who leaves each world last.
  bool is_served() const { return std::get<0>(GetParam()); }
  int last() const { return std::get<1>(GetParam()); }

  // Until the others have left, and wait for this member in the next world.
  void AwaitOthers(const std::string& address, int left) {
    const Deadline limit(kPatience);
    while (left_ < left && !limit.Passed()) absl::SleepFor(absl::Milliseconds(1));
    const auto store = ConnectStore(address, {});
    ASSERT_TRUE(store.ok()) << store.status();
    const bool is_old_store = !is_served() || last() == 0;
    const std::string prefix = is_old_store ? "sluice/fabric/" : "sluice/member/";
    const size_t entries = is_old_store ? kSize : 2 * (kSize - 1);
    AwaitEntries(**store, prefix, entries);
  }

  std::atomic<int> left_ = 0;
};

TEST_P(WorldAgainTest, AllMeetInEachOfThem) {
  const FreePort port;
  std::unique_ptr<StoreServer> apart;
  if (!is_served()) apart = ServeOnLoopback();
  const std::string address = is_served() ? port.address() : apart->address();
  std::vector<WorldOptions> options = AllOptions(nullptr, {{"member", kSize}});
  for (WorldOptions& each : options) {
    each.store = address;
    each.serve = is_served() && each.rank == 0;
  }
  OnThreads(kSize, [&](int i) {
    for (int round = 1; round <= kRounds; ++round) {
      auto world = World::Join(options[static_cast<size_t>(i)]);
      ASSERT_TRUE(world.ok()) << round << ": " << world.status();
      auto fabric = (*world)->MakeFabric();
      ASSERT_TRUE(fabric.ok()) << round << ": " << fabric.status();
      ASSERT_EQ((*fabric)->size(), kSize);
      ExpectGather(fabric->get());
      if (i == last() && round < kRounds) AwaitOthers(address, round * (kSize - 1));
      *world = nullptr;
      if (i != last()) ++left_;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(World, WorldAgainTest,
                         testing::Combine(testing::Bool(), testing::Range(0, kSize)),
                         [](const auto& test) {
                           return absl::StrCat(std::get<0>(test.param) ? "Served" : "Apart", "Last",
                                               std::get<1>(test.param));
                         });

std::unique_ptr<StoreServer> ServeAt(const FreePort& port) {
  StoreServerOptions options;
  options.port = port.port();
  auto server = StoreServer::Listen(options);
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

// The epoch of all these worlds, which are its members.
void ExpectEpoch(const std::vector<std::unique_ptr<World>>& worlds, int64_t number) {
  OnThreads(static_cast<int>(worlds.size()), [&](int i) {
    World* const world = worlds[static_cast<size_t>(i)].get();
    auto fabric = world->NextEpoch({});
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    EXPECT_EQ((*fabric)->size(), kSize);
    ExpectGather(fabric->get());
    EXPECT_EQ(world->epoch(), number);
  });
}

// The members register again, also where one of them is a new process, which knows of no epoch.
TEST(WorldStoreAgainTest, EpochsGoOnAtAStoreThatWasStartedAnew) {
  const FreePort port;
  std::unique_ptr<StoreServer> server = ServeAt(port);
  std::vector<WorldOptions> options = AllOptions(nullptr, {{"member", kSize}});
  for (WorldOptions& each : options) each.store = port.address();
  for (WorldOptions& each : options) each.serve = false;
  std::vector<std::unique_ptr<World>> worlds = JoinAll(options);
  ExpectEpoch(worlds, 1);
  ExpectEpoch(worlds, 2);
  server = nullptr;
  EXPECT_EQ(worlds[0]->members().status().code(), absl::StatusCode::kUnavailable);
  server = ServeAt(port);
  const absl::Status lost = worlds[0]->members().status();
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(lost.message()), testing::HasSubstr("the next epoch joins the new one"));
  ExpectEpoch(worlds, 3);
  EXPECT_EQ(worlds[0]->members()->size(), kSize);
  server = nullptr;
  worlds[1] = nullptr;
  server = ServeAt(port);
  worlds[1] = JoinOne(options[1]);
  ExpectEpoch(worlds, 4);
}

// A newcomer comes to a store that was started anew before the others do, and gets the rank of one.
TEST(WorldStoreAgainTest, RanksOfTheStoreStayApart) {
  const FreePort port;
  std::unique_ptr<StoreServer> server = ServeAt(port);
  WorldOptions any = MemberOptions(nullptr, {{"member", kSize}}, "member", kAnyRank);
  any.store = port.address();
  std::vector<std::unique_ptr<World>> worlds = JoinAll({any, any, any});
  ExpectEpoch(worlds, 1);
  const auto first = worlds[0]->rank() == 0 ? size_t{0} : worlds[1]->rank() == 0 ? 1 : 2;
  const size_t left = (first + 1) % kSize;
  const size_t kept = (first + 2) % kSize;
  const int rank_of_kept = worlds[kept]->rank();
  server = nullptr;
  worlds[left] = nullptr;
  server = ServeAt(port);
  worlds[left] = JoinOne(any);
  EXPECT_EQ(worlds[left]->rank(), 0);
  ExpectEpoch(worlds, 2);
  std::set<int> ranks;
  for (const auto& world : worlds) ranks.insert(world->rank());
  EXPECT_THAT(ranks, testing::ElementsAre(0, 1, 2));
  EXPECT_TRUE(worlds[kept]->rank() == rank_of_kept || worlds[first]->rank() == rank_of_kept);
}

// A member whose rank a newcomer has leaves the others theirs, as they may come, too.
TEST(WorldStoreAgainTest, RanksOfOldMembersAreKeptForThem) {
  const FreePort port;
  std::unique_ptr<StoreServer> server = ServeAt(port);
  WorldOptions any = MemberOptions(nullptr, {{"member", kSize}}, "member", kAnyRank);
  any.store = port.address();
  WorldOptions second = any;
  second.rank = 1;
  second.serve = false;
  std::vector<std::unique_ptr<World>> worlds = JoinAll({any, second});
  const auto next = [&] {
    EpochOptions two;
    two.at_least = {{"member", static_cast<int>(worlds.size())}};
    OnThreads(static_cast<int>(worlds.size()), [&](int i) {
      const auto fabric = worlds[static_cast<size_t>(i)]->NextEpoch(two);
      EXPECT_TRUE(fabric.ok()) << fabric.status();
    });
  };
  next();
  EXPECT_EQ(worlds[0]->rank(), 0);
  server = nullptr;
  server = ServeAt(port);
  worlds.push_back(JoinOne(any));
  next();
  EXPECT_EQ(worlds[0]->rank(), 2);
  EXPECT_EQ(worlds[1]->rank(), 1);
  EXPECT_EQ(worlds[2]->rank(), 0);
}

// Calls that were made while there was no store wait for one.
TEST(WorldStoreAgainTest, AnEpochWaitsForTheStore) {
  const FreePort port;
  std::unique_ptr<StoreServer> server = ServeAt(port);
  std::vector<WorldOptions> options = AllOptions(nullptr, {{"member", kSize}});
  for (WorldOptions& each : options) each.store = port.address();
  for (WorldOptions& each : options) each.serve = false;
  const std::vector<std::unique_ptr<World>> worlds = JoinAll(options);
  ExpectEpoch(worlds, 1);
  server = nullptr;
  const auto late = worlds[0]->NextEpoch({.timeout = absl::Milliseconds(200)}).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kUnavailable) << late;
  std::atomic<int> calling = 0;
  OnThreads(kSize + 1, [&](int i) {
    if (i == kSize) {
      const Deadline limit(kPatience);
      while (calling < kSize && !limit.Passed()) absl::SleepFor(absl::Milliseconds(1));
      server = ServeAt(port);
      return;
    }
    ++calling;
    const auto fabric = worlds[static_cast<size_t>(i)]->NextEpoch({});
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    EXPECT_EQ(worlds[static_cast<size_t>(i)]->epoch(), 2);
  });
}

}  // namespace
}  // namespace sluice::world_test
