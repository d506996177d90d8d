// Who gives the current version to whom, for servers that come and go.
#include "sync/catch_up.h"

#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/own_folder.h"
#include "sync/holding.h"
#include "sync/options.h"
#include "sync/weights.h"

namespace sluice::bench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kTrainers = 2;

// Two tensors on servers that are replicas of `tp` each.
SyncWeights MakeWeights(int tp) {
  const std::string path = InOwnFolder("system-" + std::to_string(tp) + ".json");
  std::ofstream(path) << R"({"train": {"num_gpus": 2, "fsdp_size": 2}, "generation": {"num_gpus": )"
                      << tp << R"(, "tp_size": )" << tp << "}}";
  SyncOptions options;
  options.tensors = "2,8,8";
  options.system_file = path;
  auto weights = SyncWeights::Make(options);
  EXPECT_TRUE(weights.ok()) << weights.status();
  return *std::move(weights);
}

std::optional<CatchUpPlan> PlanFor(const SyncWeights& weights, const std::vector<Held>& held) {
  constexpr int64_t kVersion = 7;
  auto plan = PlanCatchUp(weights, kTrainers, held, kVersion);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : std::nullopt;
}

const Held kNothing;

TEST(CatchUpPlanTest, AReplicaOfOneServerIsTheSameAtEveryPlace) {
  const SyncWeights weights = MakeWeights(1);
  const auto plan = PlanFor(weights, {{7, {4, 3}}, kNothing, {7, {2, 0}}, {5, {4, 2}}});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->is_target, ElementsAre(false, true, false, true));
  for (const Layout& source : plan->sources) EXPECT_THAT(source.mesh.ranks(), ElementsAre(2, 4));
  ASSERT_EQ(plan->targets.size(), 1u);
  for (const Layout& target : plan->targets[0]) EXPECT_THAT(target.mesh.ranks(), ElementsAre(3, 5));
}

TEST(CatchUpPlanTest, NothingToDo) {
  const SyncWeights weights = MakeWeights(1);
  EXPECT_FALSE(PlanFor(weights, {{7, {2, 0}}, {7, {2, 1}}}));
  EXPECT_FALSE(PlanFor(weights, {kNothing, {6, {2, 1}}}));  // nobody holds it
  // Who holds a newer one lacks nothing, and is no source.
  EXPECT_FALSE(PlanFor(weights, {{8, {2, 0}}, {7, {2, 1}}}));
  EXPECT_FALSE(PlanFor(weights, {{8, {2, 0}}, kNothing}));
  const auto none = PlanCatchUp(weights, kTrainers, {{kNothing, kNothing}}, 0);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
}

TEST(CatchUpPlanTest, OneHalfOfAReplicaIsNew) {
  const SyncWeights weights = MakeWeights(2);
  EXPECT_EQ(weights.replica(), 2);
  // The other half comes again, too: a row of the mesh gets all of it.
  const auto plan = PlanFor(weights, {{7, {4, 0}}, {7, {4, 1}}, kNothing, {7, {4, 3}}});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->is_target, ElementsAre(false, false, true, true));
  EXPECT_THAT(plan->sources[0].mesh.ranks(), ElementsAre(2, 3));
  EXPECT_THAT(plan->targets[0][1].mesh.ranks(), ElementsAre(4, 5));
}

TEST(CatchUpPlanTest, AServerThatIsLeftOverNeedsAllOfEveryTensor) {
  const SyncWeights weights = MakeWeights(2);
  // Of four servers the third is lost, and the fourth had the second half.
  const auto plan = PlanFor(weights, {{7, {4, 0}}, {7, {4, 1}}, {7, {4, 3}}});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->is_target, ElementsAre(false, false, true));
  EXPECT_THAT(plan->sources[0].mesh.ranks(), ElementsAre(2, 3));
  ASSERT_EQ(plan->targets.size(), 2u);
  EXPECT_THAT(plan->targets[0][0].mesh.ranks(), IsEmpty());
  EXPECT_THAT(plan->targets[1][0].mesh.ranks(), ElementsAre(4));
}

TEST(CatchUpPlanTest, WhoIsLeftDoesNotHoldAllOfIt) {
  const SyncWeights weights = MakeWeights(2);
  EXPECT_FALSE(PlanFor(weights, {{7, {2, 0}}}));
  EXPECT_FALSE(PlanFor(weights, {{7, {4, 1}}, {7, {4, 3}}}));
  // The halves of two replicas were one copy together, but no row of a mesh.
  EXPECT_FALSE(PlanFor(weights, {{7, {4, 0}}, {7, {4, 3}}, kNothing}));
}

TEST(CatchUpPlanTest, WhatWasLeftOverIsACopyToo) {
  const SyncWeights weights = MakeWeights(2);
  const auto plan = PlanFor(weights, {kNothing, {7, {3, 2}}});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->is_target, ElementsAre(true, true));
  EXPECT_THAT(plan->sources[0].mesh.ranks(), ElementsAre(3));
  EXPECT_THAT(plan->targets[0][0].mesh.ranks(), ElementsAre(2, 3));
}

constexpr size_t kPage = 4096;

TEST(ShelfTest, GivesBackWhatWasPutThere) {
  Shelf shelf;
  MappedMemory memory = shelf.Take(2 * kPage);
  ASSERT_NE(memory, nullptr);
  std::memset(memory.get(), 1, 2 * kPage);
  const std::byte* const data = memory.get();
  shelf.Put(std::move(memory));
  EXPECT_EQ(shelf.pieces(), 1);
  EXPECT_EQ(shelf.Take(kPage).get(), data);
  EXPECT_EQ(shelf.pieces(), 0);
}

TEST(ShelfTest, TheSmallestThatIsLargeEnough) {
  Shelf shelf;
  shelf.Stock(1, 4 * kPage);
  shelf.Stock(1, 3 * kPage);
  shelf.Stock(1, 2 * kPage);
  ASSERT_EQ(shelf.pieces(), 3);
  const MappedMemory memory = shelf.Take(3 * kPage);
  EXPECT_EQ(memory.get_deleter().bytes, 3 * kPage);
  EXPECT_EQ(shelf.pieces(), 2);
}

TEST(ShelfTest, WhatDoesNotFitIsNotKept) {
  for (const size_t kept : {1, 9}) {
    Shelf shelf;
    shelf.Stock(2, kept * kPage);
    const MappedMemory memory = shelf.Take(4 * kPage);
    EXPECT_EQ(memory.get_deleter().bytes, 4 * kPage);
    EXPECT_EQ(shelf.pieces(), 0);
  }
}

TEST(ShelfTest, KeepsTheLastOnesThatCame) {
  Shelf shelf;
  shelf.Stock(5, kPage);
  EXPECT_EQ(shelf.pieces(), 3);
  shelf.Put(MappedMemory());
  EXPECT_EQ(shelf.pieces(), 3);
}

TEST(ShelfTest, SaysWhereMemoryEnds) {
  Shelf shelf;
  EXPECT_EQ(shelf.Take(size_t{1} << 60), nullptr);
  shelf.Stock(3, size_t{1} << 60);
  EXPECT_EQ(shelf.pieces(), 0);
}

}  // namespace
}  // namespace sluice::bench
