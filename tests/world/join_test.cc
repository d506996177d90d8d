// Joining a world: who is there, who may not, and what is said about it.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/own_folder.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "world/members.h"
#include "world/store/free_port.h"

namespace sluice::world_test {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const std::vector<RoleSize>& Roles() {
  static const auto* const kRoles = new std::vector<RoleSize>{{"trainer", 1}, {"server", 2}};
  return *kRoles;
}

std::string Text(const absl::Status& status) { return status.ToString(); }

// How often a thread of this process has gone to sleep.
int64_t SleepsOf(pid_t thread) {
  std::ifstream status(absl::StrCat("/proc/self/task/", thread, "/status"));
  std::string word;
  int64_t sleeps = 0;
  while (status >> word) {
    if (word == "voluntary_ctxt_switches:") status >> sleeps;
  }
  return sleeps;
}

TEST(JoinTest, TheFirstOneWaitsForNobody) {
  const auto world = JoinOne(MemberOptions(MakeMemoryStore(), Roles(), "server", 1));
  EXPECT_THAT(*world->missing(), ElementsAre("trainer 0", "server 0"));
  const auto members = world->members();
  ASSERT_EQ(members->size(), 1u);
  EXPECT_EQ((*members)[0].role, "server");
  EXPECT_EQ((*members)[0].rank, 1);
  EXPECT_TRUE((*members)[0].alive);
  EXPECT_EQ(world->FabricRank("server", 1), 2);
  EXPECT_EQ(world->FabricRank("trainer", 0), 0);
  EXPECT_EQ(world->FabricRank("trainer", 1), -1);
  EXPECT_EQ(world->FabricRank("judge", 0), -1);
  EXPECT_EQ(world->store_address(), "");
}

TEST(JoinTest, WhoeverComesAndLeavesIsSeen) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const auto first = JoinOne(MemberOptions(store, Roles(), "server", 0));
  {
    const auto second = JoinOne(MemberOptions(store, Roles(), "trainer", 0));
    EXPECT_THAT(*first->missing(), ElementsAre("server 1"));
    EXPECT_EQ(first->members()->size(), 2u);
  }
  EXPECT_THAT(*first->missing(), ElementsAre("trainer 0", "server 1"));
  EXPECT_EQ(first->members()->size(), 1u);
}

TEST(JoinTest, SizesOfOtherRolesMayBeLeftToThem) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  WorldOptions trainer = MemberOptions(store, {{"trainer", 1}, {"server", 0}}, "trainer", 0);
  const auto first = JoinOne(trainer);
  EXPECT_THAT(*first->missing(), ElementsAre("server 0"));
  const auto second = JoinOne(MemberOptions(store, Roles(), "server", 1));
  EXPECT_THAT(*first->missing(), ElementsAre("server 0"));
  const auto third = JoinOne(MemberOptions(store, Roles(), "server", 0));
  EXPECT_THAT(*first->missing(), IsEmpty());
  EXPECT_EQ(first->FabricRank("server", 1), 2);
}

TEST(JoinTest, ASecondOneOfTheSameRankIsRefused) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const auto first = JoinOne(MemberOptions(store, Roles(), "server", 1));
  const WorldMember holder = (*first->members())[0];
  const auto second = World::Join(MemberOptions(store, Roles(), "server", 1));
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(Text(second.status()),
              AllOf(HasSubstr(absl::StrCat("process ", holder.pid)), HasSubstr(holder.host)));
  // The first one has not noticed.
  EXPECT_EQ(first->members()->size(), 1u);
}

TEST(JoinTest, OneOfManyOfTheSameRankWins) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  std::vector<absl::StatusOr<std::unique_ptr<World>>> worlds(8);
  OnThreads(8, [&](int i) {
    worlds[static_cast<size_t>(i)] = World::Join(MemberOptions(store, Roles(), "server", 1));
  });
  int joined = 0;
  for (const auto& world : worlds) {
    if (world.ok()) {
      ++joined;
    } else {
      EXPECT_EQ(world.status().code(), StatusCode::kAlreadyExists) << world.status();
    }
  }
  EXPECT_EQ(joined, 1);
}

TEST(JoinTest, OtherSizesAreRefused) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const auto first = JoinOne(MemberOptions(store, Roles(), "server", 1));
  const auto second =
      World::Join(MemberOptions(store, {{"trainer", 1}, {"server", 3}}, "server", 0));
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(second.status()), AllOf(HasSubstr("server 0"), HasSubstr("server:3"),
                                           HasSubstr("server 1"), HasSubstr("server:2")));
  const auto third = World::Join(MemberOptions(store, {{"server", 2}}, "server", 0));
  EXPECT_EQ(third.status().code(), StatusCode::kFailedPrecondition);
  // Those that were refused have left their places.
  EXPECT_EQ(first->members()->size(), 1u);
  const auto right = JoinOne(MemberOptions(store, Roles(), "server", 0));
  EXPECT_THAT(*first->missing(), ElementsAre("trainer 0"));
}

TEST(JoinTest, WorldsOfOneStoreAreApart) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  WorldOptions options = MemberOptions(store, {{"member", 1}}, "member", 0);
  const auto first = JoinOne(options);
  options.name = "another";
  const auto second = JoinOne(options);
  EXPECT_TRUE(first->WaitForAll(kPatience).ok());
  EXPECT_TRUE(second->WaitForAll(kPatience).ok());
}

TEST(JoinTest, BadOptionsAreNamed) {
  const auto status = [](const std::function<void(WorldOptions*)>& change) {
    WorldOptions options = MemberOptions(MakeMemoryStore(), Roles(), "server", 1);
    change(&options);
    const absl::Status result = World::Join(options).status();
    EXPECT_EQ(result.code(), StatusCode::kInvalidArgument) << result;
    return Text(result);
  };
  const std::vector<std::pair<std::string, std::function<void(WorldOptions*)>>> changes = {
      {"rank 2", [](WorldOptions* o) { o->rank = 2; }},
      {"rank -1", [](WorldOptions* o) { o->rank = -1; }},
      {"0 members", [](WorldOptions* o) { o->size = 0; }},
      {"says 2", [](WorldOptions* o) { o->size = 3; }},
      {"judge", [](WorldOptions* o) { o->role = "judge"; }},
      {"role", [](WorldOptions* o) { o->role = ""; }},
      {"a/b", [](WorldOptions* o) { o->name = "a/b"; }},
      {"twice",
       [](WorldOptions* o) {
         o->roles.push_back({"server", 2});
       }},
      {"rdma", [](WorldOptions* o) { o->wires = "rdma"; }},
      {"lease", [](WorldOptions* o) { o->lease = absl::Milliseconds(1); }},
      {"timeout", [](WorldOptions* o) { o->timeout = absl::ZeroDuration(); }},
      {"store", [](WorldOptions* o) { o->store = "tcp://a:1"; }}};
  for (const auto& [text, change] : changes) EXPECT_THAT(status(change), HasSubstr(text));
  for (const std::string address :
       {"", "a:1", "tcp://", "tcp://a", "tcp://a:0", "tcp://:1", "tcp://a:65536", "udp://a:1"}) {
    status([&](WorldOptions* o) {
      o->own_store = nullptr;
      o->store = address;
    });
  }
}

TEST(JoinTest, WaitingForOthersHasALimit) {
  const auto world = JoinOne(MemberOptions(MakeMemoryStore(), Roles(), "server", 1));
  const absl::Status status = world->WaitForAll(absl::Milliseconds(20));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(status), HasSubstr("trainer 0 and server 0 have not come"));
}

std::vector<int> RanksOf(const std::vector<std::unique_ptr<World>>& worlds) {
  std::vector<int> ranks;
  ranks.reserve(worlds.size());
  for (const auto& world : worlds) ranks.push_back(world == nullptr ? -1 : world->rank());
  return ranks;
}

// Also where they come at once, to either kind of store.
TEST(JoinTest, TheStoreGivesRanks) {
  const auto server = ServeOnLoopback();
  for (const std::shared_ptr<Store>& store :
       {std::shared_ptr<Store>(MakeMemoryStore()), ReachStore(server->address())}) {
    const std::vector<RoleSize> roles = {{"trainer", 1}, {"server", 6}};
    const WorldOptions any = MemberOptions(store, roles, "server", kAnyRank);
    std::vector<std::unique_ptr<World>> worlds = JoinAll(std::vector<WorldOptions>(6, any));
    EXPECT_THAT(RanksOf(worlds), UnorderedElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(*worlds[0]->missing(), ElementsAre("trainer 0"));
    const absl::Status full = World::Join(any).status();
    EXPECT_EQ(full.code(), StatusCode::kAlreadyExists);
    EXPECT_THAT(Text(full), HasSubstr("role \"server\" has 6 members, and all of them"));
    for (const size_t i : {size_t{3}, size_t{0}}) {
      const int rank = worlds[i]->rank();
      worlds[i] = nullptr;
      worlds[i] = JoinOne(any);
      ASSERT_NE(worlds[i], nullptr);
      EXPECT_EQ(worlds[i]->rank(), rank);
    }
    const auto trainer = JoinOne(MemberOptions(store, roles, "trainer", kAnyRank));
    EXPECT_EQ(trainer->rank(), 0);
    EXPECT_THAT(*trainer->missing(), IsEmpty());
  }
}

TEST(JoinTest, AllMeetHoweverTheyCome) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const std::vector<WorldOptions> options = AllOptions(store, {{"trainer", 3}, {"server", 4}});
  std::vector<std::unique_ptr<World>> worlds(options.size());
  OnThreads(static_cast<int>(options.size()), [&](int i) {
    const auto at = static_cast<size_t>(i);
    worlds[at] = JoinOne(options[at]);
    const absl::Status status = worlds[at]->WaitForAll(kPatience);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(worlds[at]->FabricRank(options[at].role, options[at].rank), i);
  });
}

// ---- Over TCP.

WorldOptions TcpOptions(const std::string& address, int rank, int size) {
  WorldOptions options;
  options.store = address;
  options.rank = rank;
  options.size = size;
  options.wires = "tcp";
  options.timeout = kPatience;
  options.lease = kPatience;
  return options;
}

TEST(JoinTcpTest, WrongTokensAreRefused) {
  const auto server = ServeOnLoopback("secret");
  WorldOptions options = TcpOptions(server->address(), 0, 1);
  for (const std::string token : {"", "Secret", "secret "}) {
    options.token = token;
    const absl::Status status = World::Join(options).status();
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << status;
  }
  options.token = "secret";
  EXPECT_EQ(JoinOne(options)->store_address(), server->address());
}

TEST(JoinTcpTest, TheFirstMemberServesWhereNobodyDoes) {
  const FreePort free;
  std::vector<WorldOptions> options;
  options.reserve(3);
  for (int rank = 0; rank < 3; ++rank) options.push_back(TcpOptions(free.address(), rank, 3));
  const auto worlds = JoinAll(options);
  for (const auto& world : worlds) {
    ASSERT_NE(world, nullptr);
    EXPECT_TRUE(world->WaitForAll(kPatience).ok());
  }
}

TEST(JoinTcpTest, ServingWhereSomebodyDoesIsAnError) {
  const auto server = ServeOnLoopback();
  WorldOptions options = TcpOptions(server->address(), 0, 1);
  options.serve = true;
  options.store_timeout = absl::Milliseconds(50);
  const absl::Status status = World::Join(options).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(Text(status), AllOf(HasSubstr(server->address()), HasSubstr("for 50ms"),
                                  HasSubstr("end the process")));
  options.serve = absl::nullopt;
  options.store_timeout = WorldOptions().store_timeout;
  JoinOne(options);
}

TEST(JoinTcpTest, WhoeverServesWaitsForAWorldThatEnds) {
  const FreePort free;
  WorldOptions options = TcpOptions(free.address(), 0, 1);
  options.serve = true;
  std::unique_ptr<World> former = JoinOne(options);
  std::atomic<pid_t> thread = 0;
  std::atomic<bool> is_done = false;
  std::unique_ptr<World> next;
  std::thread joins([&] {
    thread = gettid();
    next = JoinOne(options);
    is_done = true;
  });
  const auto sleeps = [&] { return thread == 0 ? 0 : SleepsOf(thread); };
  for (const int64_t begin = sleeps(); !is_done && sleeps() < begin + 3;) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  former = nullptr;
  joins.join();
  ASSERT_NE(next, nullptr);
  EXPECT_TRUE(next->MakeFabric().ok());
}

TEST(JoinTcpTest, NobodyServes) {
  const FreePort free;
  WorldOptions options = TcpOptions(free.address(), 1, 2);
  options.store_timeout = absl::Milliseconds(50);
  absl::Status status = World::Join(options).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  EXPECT_THAT(Text(status), HasSubstr(options.store));
  options.rank = 0;
  options.serve = false;
  status = World::Join(options).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
}

// Whoever else meets there needs a secret.
TEST(JoinTcpTest, ServingBeyondThisHostTakesAToken) {
  const FreePort free;
  WorldOptions options = TcpOptions(free.address("192.0.2.1"), 0, 1);
  options.serve = true;
  EXPECT_EQ(World::Join(options).status().code(), StatusCode::kFailedPrecondition);
  // No host of this address: the store is reached over the loopback interface.
  options.token = "secret";
  JoinOne(options);
}

TEST(JoinTcpTest, TokensFromFiles) {
  const auto server = ServeOnLoopback("secret");
  const std::string path = InOwnFolder("token");
  FILE* const file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("secret\n", file);
  std::fclose(file);
  WorldOptions options = TcpOptions(server->address(), 0, 1);
  options.token_file = path;
  JoinOne(options);
  options.token_file = path + "-missing";
  EXPECT_THAT(Text(World::Join(options).status()), HasSubstr("-missing"));
  // Nobody writes to it.
  options.token_file = InOwnFolder("pipe");
  ASSERT_EQ(mkfifo(options.token_file.c_str(), 0600), 0);
  EXPECT_THAT(Text(World::Join(options).status()), HasSubstr("no regular file"));
}

// A process that is gone without farewell: its lease ends, its word stays.
TEST(JoinTest, LostMembersAreNamedAndReplaced) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const auto first = JoinOne(MemberOptions(store, {{"a", 3}}, "a", 0));
  const WorldOptions options = MemberOptions(store, {{"a", 3}}, "a", 1);
  {
    auto second = JoinOne(options);
    EXPECT_THAT(*first->missing(), ElementsAre("a 2"));
    absl::Status waited;
    OnThreads(2, [&](int i) {
      if (i == 0) {
        waited = first->WaitForAll(kPatience);
        return;
      }
      // As if the process had ended: nobody says farewell for it.
      EXPECT_TRUE(store->Set("sluice/member/a/000001/here", "").ok());
    });
    EXPECT_EQ(waited.code(), StatusCode::kUnavailable) << waited;
    EXPECT_THAT(Text(waited), AllOf(HasSubstr("a 1 (process"), HasSubstr("lost")));
    const auto members = first->members();
    ASSERT_EQ(members->size(), 2u);
    EXPECT_FALSE((*members)[1].alive);
    EXPECT_THAT(*first->missing(), ElementsAre("a 1", "a 2"));
    // Its lease is gone, so its end takes back nothing.
  }
  const auto third = JoinOne(options);
  EXPECT_THAT(*first->missing(), ElementsAre("a 2"));
  const absl::Status status = first->WaitForAll(absl::Milliseconds(20));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
}

}  // namespace
}  // namespace sluice::world_test
