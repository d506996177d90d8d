// A look at a world from outside: who is there, who is missing, and what members say.
#include "world/look.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "world/members.h"

namespace sluice::world_test {
namespace {

std::vector<std::string> LookNames(const WorldLook& look) {
  std::vector<std::string> names;
  for (const MemberLook& one : look.members) {
    names.push_back(one.member.role + " " + std::to_string(one.member.rank));
  }
  return names;
}

// Looks until member `index` says this: what was said is on its way.
WorldLook LookUntil(Store& store, size_t index, const std::string& says) {
  while (true) {
    WorldLook look = LookAtWorld(store, "sluice").value();
    if (look.members.size() > index && look.members[index].says == says) return look;
  }
}

TEST(LookTest, AWorldThatIsNotThereHasNothing) {
  const auto store = MakeMemoryStore();
  const WorldLook look = LookAtWorld(*store, "sluice").value();
  EXPECT_EQ(look.epoch, 0);
  EXPECT_THAT(look.members, testing::IsEmpty());
  EXPECT_THAT(look.missing, testing::IsEmpty());
  EXPECT_THAT(*store->List(""), testing::IsEmpty()) << "it leaves nothing behind";
}

TEST(LookTest, MembersAndWhoIsMissing) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const auto world = JoinOne(MemberOptions(store, {{"trainer", 1}, {"server", 2}}, "server", 1));
  const WorldLook look = LookAtWorld(*store, "sluice").value();
  EXPECT_THAT(LookNames(look), testing::ElementsAre("server 1"));
  EXPECT_TRUE(look.members[0].member.alive);
  EXPECT_FALSE(look.members[0].in_epoch);
  EXPECT_THAT(look.missing, testing::ElementsAre("trainer 0", "server 0"));
  EXPECT_EQ(*world->missing(), look.missing);
  EXPECT_EQ(world->members()->size(), 1u) << "who looks is no member";
}

TEST(LookTest, AnEpochHasItsMembers) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const auto worlds = JoinAll(AllOptions(store, {{"a", 2}}));
  OnThreads(2, [&](int i) { ASSERT_TRUE(worlds[i]->NextEpoch({}).ok()); });
  const WorldLook look = LookAtWorld(*store, "sluice").value();
  EXPECT_EQ(look.epoch, worlds[0]->epoch());
  ASSERT_EQ(look.members.size(), 2u);
  for (const MemberLook& one : look.members) EXPECT_TRUE(one.in_epoch);
}

TEST(LookTest, WhatMembersSay) {
  const auto server = ServeOnLoopback();
  const auto world = JoinOne(MemberOptions(ReachStore(server->address()), {{"a", 2}}, "a", 0));
  const auto store = ReachStore(server->address());
  EXPECT_EQ(LookAtWorld(*store, "sluice").value().members[0].says, "");
  ASSERT_TRUE(world->Say("version 3").ok());
  ASSERT_TRUE(world->Say("version\n4").ok());
  EXPECT_EQ(LookUntil(*store, 0, "version\n4").missing, std::vector<std::string>{"a 1"});
  EXPECT_EQ(world->Say("").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(world->Say(std::string(1025, 'x')).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(world->Say(std::string(1024, 'x')).ok());
}

// One that comes after another one in the same place has said nothing yet.
TEST(LookTest, WordsGoWithTheirMember) {
  const auto server = ServeOnLoopback();
  const auto store = ReachStore(server->address());
  auto world = JoinOne(MemberOptions(ReachStore(server->address()), {{"a", 1}}, "a", 0));
  ASSERT_TRUE(world->Say("mine").ok());
  LookUntil(*store, 0, "mine");
  // As if the words came after the farewell.
  const std::string key = SaysKey("sluice", "a", 0);
  const std::string words = *store->Get(key, absl::ZeroDuration());
  world.reset();
  ASSERT_TRUE(store->Set(key, words).ok());
  world = JoinOne(MemberOptions(ReachStore(server->address()), {{"a", 1}}, "a", 0));
  EXPECT_EQ(LookAtWorld(*store, "sluice").value().members[0].says, "");
}

// Some texts at once are taken, and then one a second: the store is not flooded.
TEST(LookTest, WhoSaysTooMuchIsNotHeard) {
  const auto server = ServeOnLoopback();
  const auto store = ReachStore(server->address());
  const auto world = JoinOne(MemberOptions(ReachStore(server->address()), {{"a", 1}}, "a", 0));
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(world->Say(std::to_string(i)).ok());
  ASSERT_TRUE(world->members().ok());  // which comes after them, over the same connection
  EXPECT_NE(LookAtWorld(*store, "sluice").value().members[0].says, "99999");
}

}  // namespace
}  // namespace sluice::world_test
