// Epochs of a world: members are lost, come back, and join, and the others go on.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/fabric.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "world/members.h"
#include "world/store/store_tools.h"

namespace sluice::world_test {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Fabrics = std::vector<std::unique_ptr<Fabric>>;
using Worlds = std::vector<std::unique_ptr<World>>;

const std::vector<RoleSize>& Roles() {
  static const auto* const kRoles = new std::vector<RoleSize>{{"trainer", 1}, {"server", 4}};
  return *kRoles;
}

std::unique_ptr<World> JoinAs(const std::shared_ptr<Store>& store, const std::string& role,
                              int rank) {
  return JoinOne(MemberOptions(store, Roles(), role, rank));
}

std::unique_ptr<Fabric> NextEpoch(World& world, int servers) {
  auto fabric = world.NextEpoch(AtLeast(servers));
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return fabric.ok() ? *std::move(fabric) : nullptr;
}

// The next epoch of each world, in their order, which is that of ranks.
Fabrics NextEpochs(const Worlds& worlds, int servers) {
  Fabrics fabrics(worlds.size());
  OnThreads(static_cast<int>(worlds.size()), [&](int i) {
    const auto at = static_cast<size_t>(i);
    fabrics[at] = NextEpoch(*worlds[at], servers);
  });
  for (const auto& world : worlds) {
    EXPECT_EQ(world->epoch(), worlds[0]->epoch());
    EXPECT_EQ(world->epoch_members().size(), worlds.size());
  }
  return fabrics;
}

TEST(EpochTest, OfAllMembers) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const Worlds worlds = JoinAll(AllOptions(store, Roles()));
  EXPECT_EQ(worlds[0]->epoch(), 0);
  for (int i = 1; i <= 20; ++i) {
    const Fabrics fabrics = NextEpochs(worlds, 4);
    EXPECT_EQ(worlds[0]->epoch(), i);
    if (i % 5 == 0) ExpectGathers(fabrics);
  }
  // Nothing grows at the store.
  EXPECT_LE(store->List("sluice/fabric/")->size(), 0u);
  EXPECT_LE(store->List("sluice/epoch/")->size(), 20u);
}

TEST(EpochTest, WithoutThoseThatHaveLeftAndWithThoseThatJoin) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  Worlds worlds;
  worlds.push_back(JoinAs(store, "trainer", 0));
  worlds.push_back(JoinAs(store, "server", 1));
  worlds.push_back(JoinAs(store, "server", 3));
  ExpectGathers(NextEpochs(worlds, 2));
  EXPECT_EQ(worlds[0]->epoch_members()[2].rank, 3);
  worlds.erase(worlds.begin() + 1);
  ExpectGathers(NextEpochs(worlds, 1));
  EXPECT_EQ(worlds[0]->epoch_members()[1].rank, 3);
  worlds.insert(worlds.begin() + 1, JoinAs(store, "server", 0));
  ExpectGathers(NextEpochs(worlds, 1));
  EXPECT_EQ(worlds[1]->epoch(), worlds[0]->epoch());
}

// As if the process had died: its lease ends without farewell, and it never calls.
TEST(EpochTest, WithoutTheLost) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  Worlds worlds = JoinAll(AllOptions(store, Roles()));
  const Fabrics first = NextEpochs(worlds, 1);
  const std::unique_ptr<World> lost = std::move(worlds[2]);
  worlds.erase(worlds.begin() + 2);
  EXPECT_TRUE(store->Set("sluice/member/server/000001/here", "").ok());
  ExpectGathers(NextEpochs(worlds, 1));
  const auto members = worlds[0]->members();
  ASSERT_EQ(members->size(), 5u);
  EXPECT_FALSE((*members)[2].alive);
}

// The list of the epoch has it, and the others wait for it.
TEST(EpochTest, WithoutThoseThatAreLostMeanwhile) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  Worlds worlds = JoinAll(AllOptions(store, Roles()));
  const std::unique_ptr<World> lost = std::move(worlds[2]);
  worlds.erase(worlds.begin() + 2);
  Fabrics fabrics;
  OnThreads(2, [&](int i) {
    if (i == 0) {
      fabrics = NextEpochs(worlds, 1);
      return;
    }
    AwaitEntries(*store, "sluice/fabric/", 5);  // four cards and the count
    EXPECT_TRUE(store->Set("sluice/member/server/000001/here", "").ok());
  });
  ExpectGathers(fabrics);
  EXPECT_EQ(worlds[0]->epoch_members().size(), 4u);
}

// It asks while the others are busy with an epoch; they come when they are done.
TEST(EpochTest, AJoinerWaitsForTheOthers) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  Worlds worlds;
  worlds.push_back(JoinAs(store, "trainer", 0));
  worlds.push_back(JoinAs(store, "server", 0));
  const Fabrics first = NextEpochs(worlds, 1);
  worlds.push_back(JoinAs(store, "server", 1));
  Fabrics fabrics(3);
  const auto next_epoch = [&](int i) { return NextEpoch(*worlds[static_cast<size_t>(i)], 1); };
  OnThreads(2, [&](int i) {
    if (i == 0) {
      fabrics[2] = next_epoch(2);
      return;
    }
    ExpectGathers(first);
    OnThreads(2, [&](int rank) { fabrics[static_cast<size_t>(rank)] = next_epoch(rank); });
  });
  ExpectGathers(fabrics);
  EXPECT_EQ(worlds[0]->epoch_members().size(), 3u);
}

TEST(EpochTest, TheFirstWordOfItsEndCounts) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const Worlds worlds = JoinAll(AllOptions(store, Roles()));
  EXPECT_EQ(worlds[0]->EndEpoch(1).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(worlds[0]->EpochEndsAfter().status().code(), StatusCode::kFailedPrecondition);
  for (const int64_t version : {int64_t{7}, int64_t{0}, int64_t{1} << 40}) {
    NextEpochs(worlds, 1);
    for (const auto& world : worlds) {
      const auto word = world->EpochEndsAfter();
      ASSERT_TRUE(word.ok()) << word.status();
      EXPECT_FALSE(word->has_value());
    }
    EXPECT_TRUE(worlds[3]->EndEpoch(version).ok());
    EXPECT_TRUE(worlds[0]->EndEpoch(version + 2).ok());
    for (const auto& world : worlds) {
      const auto word = world->EpochEndsAfter();
      ASSERT_TRUE(word.ok()) << word.status();
      EXPECT_EQ(*word, version);
    }
  }
}

TEST(EpochTest, AnEndThatIsGarbageIsAnError) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const Worlds worlds = JoinAll(AllOptions(store, Roles()));
  NextEpochs(worlds, 1);
  EXPECT_TRUE(store->Set("sluice/epoch/1/end", "soon").ok());
  EXPECT_EQ(worlds[0]->EpochEndsAfter().status().code(), StatusCode::kDataLoss);
}

std::vector<int> RanksOf(const absl::StatusOr<std::vector<WorldMember>>& members) {
  EXPECT_TRUE(members.ok()) << members.status();
  std::vector<int> ranks;
  if (!members.ok()) return ranks;
  for (const WorldMember& member : *members) ranks.push_back(member.rank);
  return ranks;
}

TEST(EpochTest, JoinersAreThoseOfNoEpochOfThisMember) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  Worlds worlds;
  worlds.push_back(JoinAs(store, "trainer", 0));
  worlds.push_back(JoinAs(store, "server", 1));
  worlds.push_back(JoinAs(store, "server", 3));
  // There has been no epoch: all others have come for the first one.
  EXPECT_THAT(RanksOf(worlds[0]->Joiners()), ElementsAre(1, 3));
  NextEpochs(worlds, 1);
  for (const auto& world : worlds) EXPECT_THAT(RanksOf(world->Joiners()), IsEmpty());
  auto joiner = JoinAs(store, "server", 2);
  for (const auto& world : worlds) EXPECT_THAT(RanksOf(world->Joiners()), ElementsAre(2));
  joiner.reset();
  EXPECT_THAT(RanksOf(worlds[0]->Joiners()), IsEmpty());
  // Another process in the place of one that has left is no member of the epoch.
  worlds.erase(worlds.begin() + 1);
  worlds.insert(worlds.begin() + 1, JoinAs(store, "server", 1));
  EXPECT_THAT(RanksOf(worlds[0]->Joiners()), ElementsAre(1));
  NextEpochs(worlds, 1);
  for (const auto& world : worlds) EXPECT_THAT(RanksOf(world->Joiners()), IsEmpty());
}

// Each epoch ends with a word, and each second number is of a joiner that has given up.
TEST(EpochTest, WhatEndedEpochsHaveLeftGoes) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  Worlds worlds;
  worlds.push_back(JoinAs(store, "trainer", 0));
  worlds.push_back(JoinAs(store, "server", 0));
  NextEpochs(worlds, 1);
  EpochOptions soon = AtLeast(1);
  soon.timeout = absl::Milliseconds(1);
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(worlds[static_cast<size_t>(i % 2)]->EndEpoch(i).ok());
    {
      const auto joiner = JoinAs(store, "server", 1);
      EXPECT_EQ(joiner->NextEpoch(soon).status().code(), StatusCode::kDeadlineExceeded);
    }
    NextEpochs(worlds, 1);
  }
  EXPECT_THAT(*store->List("sluice/fabric/"), IsEmpty());
  // A list for each number and a word for each second one, of the last sixteen numbers.
  EXPECT_LE(store->List("sluice/epoch/")->size(), 30u);
}

// As if they had been lost before they could take back what they had said.
TEST(EpochTest, WhatTheLostHaveLeftGoes) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const Worlds worlds = JoinAll(AllOptions(store, Roles()));
  EXPECT_TRUE(store->Set("sluice/epoch/1/members", "lost").ok());
  EXPECT_TRUE(store->Set("sluice/fabric/epoch-1/card/000009", "card").ok());
  EXPECT_TRUE(store->Set("sluice/fabric/epoch-1/word", "failed").ok());
  EXPECT_TRUE(store->Set("sluice/epoch/begun", "2").ok());
  for (int i = 0; i < 20; ++i) NextEpochs(worlds, 4);
  EXPECT_THAT(*store->List("sluice/fabric/"), IsEmpty());
}

TEST(EpochTest, WaitingForEnoughHasALimit) {
  const auto world = JoinAs(MakeMemoryStore(), "server", 1);
  EpochOptions options = AtLeast(2);
  options.timeout = absl::Milliseconds(20);
  const absl::Status status = world->NextEpoch(options).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.ToString(), HasSubstr("1 of role server and 1 of role trainer after 20ms in"));
  options.at_least = {};  // all, so each is named
  EXPECT_THAT(world->NextEpoch(options).status().ToString(),
              HasSubstr("not there: trainer 0, server 0, "));
  for (const RoleSize& bad :
       {RoleSize{"judge", 1}, RoleSize{"server", 5}, RoleSize{"server", -1}}) {
    options.at_least = {bad};
    EXPECT_EQ(world->NextEpoch(options).status().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace sluice::world_test
