// Members that are held up, cut off or paced while others make epochs: nobody waits for ever.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "sluice/fabric.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "transport/deadline.h"
#include "world/attendance.h"
#include "world/members.h"
#include "world/store/gated_store.h"
#include "world/store/store_tools.h"
#include "world/store/test_proxy.h"

namespace sluice::world_test {
namespace {

using absl::StatusCode;

using Fabrics = std::vector<std::unique_ptr<Fabric>>;

const std::vector<RoleSize>& Roles() {
  static const auto* const kRoles = new std::vector<RoleSize>{{"trainer", 1}, {"server", 2}};
  return *kRoles;
}

std::unique_ptr<World> JoinAs(const std::shared_ptr<Store>& store, const std::string& role,
                              int rank) {
  return JoinOne(MemberOptions(store, Roles(), role, rank));
}

// Calls that meet the end of a connection may fail: it is made anew.
std::unique_ptr<Fabric> NextEpochWhenReached(World* world, int servers = 0) {
  absl::StatusOr<std::unique_ptr<Fabric>> fabric;
  do {
    fabric = world->NextEpoch(AtLeast(servers));
  } while (absl::IsUnavailable(fabric.status()));
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return fabric.ok() ? *std::move(fabric) : nullptr;
}

void AwaitJoiner(World* world) {
  const Deadline limit(kPatience);
  while (!limit.Passed()) {
    const auto joiners = world->Joiners();
    ASSERT_TRUE(joiners.ok()) << joiners.status();
    if (!joiners->empty()) return;
    absl::SleepFor(absl::Milliseconds(10));
  }
  ADD_FAILURE() << "nobody joins";
}

// Server 1 reads who is in epoch 1 and is then held up, and cut off from the store. The others
// fail that epoch, make the next one and take back all that they had said of epoch 1.
TEST(EpochDelayTest, WhoWaitsForAnEpochThatIsOverJoinsTheNextOne) {
  const auto server = ServeOnLoopback();
  TestProxy proxy(server->port());
  const auto gate = std::make_shared<GatedStore>(ReachStore(proxy.address()));
  const auto others_store = ReachStore(server->address());
  const auto trainer = JoinAs(others_store, "trainer", 0);
  const auto first = JoinAs(others_store, "server", 0);
  const auto delayed = JoinAs(gate, "server", 1);
  ASSERT_NE(delayed, nullptr);
  Fabrics fabrics(3);
  gate->HoldUp("/word");
  std::thread late([&] { fabrics[2] = NextEpochWhenReached(delayed.get()); });
  gate->AwaitHeldUp();
  const auto both = [&] {
    OnThreads(2, [&](int i) {
      fabrics[static_cast<size_t>(i)] = NextEpochWhenReached((i == 0 ? trainer : first).get());
    });
  };
  std::thread cut([&] {
    // Once both wait for the delayed one: two cards and the count.
    AwaitEntries(*others_store, "sluice/fabric/", 3);
    proxy.Cut();
  });
  both();
  cut.join();
  EXPECT_EQ(trainer->epoch_members().size(), 2u);
  gate->LetGo();
  AwaitJoiner(trainer.get());
  both();
  late.join();
  ExpectGathers(fabrics);
  EXPECT_EQ(trainer->epoch_members().size(), 3u);
  EXPECT_EQ(delayed->epoch(), trainer->epoch());
}

// Nothing passes between it and the store for longer than its lease, and nobody is told.
TEST(EpochDelayTest, WhoWasCutOffByAPartitionJoinsTheNextEpoch) {
  const auto server = ServeOnLoopback();
  TestProxy proxy(server->port());
  const auto others_store = ReachStore(server->address());
  const auto trainer = JoinAs(others_store, "trainer", 0);
  const auto first = JoinAs(others_store, "server", 0);
  WorldOptions options = MemberOptions(ReachStore(proxy.address()), Roles(), "server", 1);
  options.lease = absl::Seconds(2);
  auto joined = World::Join(options).value();
  const std::unique_ptr<World> parted = std::move(joined);
  Fabrics fabrics(3);
  // Where its lease must not have ended, they wait for two servers: a machine that stands still
  // for so long may end it.
  const auto all = [&](int count, int servers) {
    OnThreads(count, [&](int i) {
      World* const world = i == 0 ? trainer.get() : i == 1 ? first.get() : parted.get();
      fabrics[static_cast<size_t>(i)] = NextEpochWhenReached(world, servers);
    });
  };
  all(3, 2);
  ExpectGathers(fabrics);
  proxy.Freeze(true);
  // They wait for it until its lease ends.
  all(2, 0);
  EXPECT_EQ(trainer->epoch_members().size(), 2u);
  proxy.Freeze(false);
  std::thread late([&] { fabrics[2] = NextEpochWhenReached(parted.get(), 2); });
  AwaitJoiner(trainer.get());
  all(2, 2);
  late.join();
  ExpectGathers(fabrics);
  EXPECT_EQ(parted->epoch(), trainer->epoch());
}

TEST(JoinDelayTest, TheTimeForJoiningIsNotThatOfLaterCalls) {
  const auto server = ServeOnLoopback();
  TestProxy proxy(server->port());
  WorldOptions options;
  options.store = proxy.address();
  options.serve = false;
  options.rank = 0;
  options.size = 1;
  options.store_timeout = absl::Milliseconds(500);
  options.lease = kPatience;
  // A machine that is busy takes longer, now and then.
  const Deadline limit(kPatience);
  absl::StatusOr<std::unique_ptr<World>> world;
  do {
    world = World::Join(options);
  } while (!world.ok() && !limit.Passed());
  ASSERT_TRUE(world.ok()) << world.status();
  proxy.Freeze(true);
  std::thread thaws([&] {
    absl::SleepFor(options.store_timeout + absl::Milliseconds(200));
    proxy.Freeze(false);
  });
  const auto members = (*world)->members();
  thaws.join();
  EXPECT_TRUE(members.ok()) << members.status();
}

// Each look finds news: a member that waits for many would look all the time.
class EventfulStore : public FiveCalls {
 public:
  using FiveCalls::FiveCalls;

  int looks() const { return looks_; }

  absl::StatusOr<std::unique_ptr<StoreLease>> Hold(absl::string_view key, absl::string_view value,
                                                   absl::Duration lease) override {
    return inner_->Hold(key, value, lease);
  }
  absl::StatusOr<StoreView> Watch(absl::string_view prefix, uint64_t /*version*/,
                                  absl::Duration /*timeout*/) override {
    ++looks_;
    return inner_->Watch(prefix, 0, absl::ZeroDuration());
  }

 private:
  std::atomic<int> looks_ = 0;
};

TEST(EpochDelayTest, WhoWaitsForManyDoesNotAskAllTheTime) {
  constexpr int kMembers = 200;
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const std::vector<RoleSize> roles = {{"member", kMembers + 1}};
  std::vector<std::unique_ptr<World>> worlds;
  for (int rank = 1; rank < kMembers; ++rank) {
    auto world = World::Join(MemberOptions(store, roles, "member", rank));
    ASSERT_TRUE(world.ok()) << world.status();
    worlds.push_back(*std::move(world));
  }
  const auto eventful = std::make_shared<EventfulStore>(store);
  auto world = World::Join(MemberOptions(eventful, roles, "member", 0)).value();
  const int before = eventful->looks();
  EpochOptions options;
  options.timeout = absl::Seconds(1);
  EXPECT_EQ(world->NextEpoch(options).status().code(), StatusCode::kDeadlineExceeded);
  // One in a tenth of a second, where there had been hundreds.
  EXPECT_LE(eventful->looks() - before, 15);
}

}  // namespace
}  // namespace sluice::world_test
