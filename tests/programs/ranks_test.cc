// The benchmark's exchanges: gathers, statuses, knobs, and ranks that do not come.
#include "job/ranks.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/fabric.h"

namespace sluice::bench {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr absl::Duration kPatience = absl::Seconds(120);

absl::Status Idle() { return absl::OkStatus(); }

// Calls `work` on a thread for each rank.
void OnRanks(int ranks, const std::function<void(Ranks*)>& work) {
  auto fabrics = MakeLocalFabric(ranks);
  ASSERT_TRUE(fabrics.ok()) << fabrics.status();
  std::vector<std::thread> threads;
  for (std::unique_ptr<Fabric>& fabric : *fabrics) {
    threads.emplace_back([&work, mine = std::move(fabric)]() mutable {
      auto made = Ranks::Create(std::move(mine), kPatience);
      ASSERT_TRUE(made.ok()) << made.status();
      work(made->get());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class RanksTest : public testing::TestWithParam<int> {};

TEST_P(RanksTest, RecordsComeToAllOrToTheFirst) {
  OnRanks(GetParam(), [](Ranks* ranks) {
    std::vector<std::string> expected;
    for (int rank = 0; rank < ranks->size(); ++rank) {
      expected.emplace_back(static_cast<size_t>(50000 / (rank + 1)), static_cast<char>(rank));
    }
    const std::string mine = expected[static_cast<size_t>(ranks->rank())];
    const auto all = ranks->AllGather(mine, kPatience, Idle);
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_EQ(*all, expected);
    const auto first = ranks->GatherToFirst(mine, kPatience, Idle);
    ASSERT_TRUE(first.ok()) << first.status();
    if (ranks->rank() != 0) expected.clear();
    EXPECT_EQ(*first, expected);
    EXPECT_TRUE(ranks->Barrier(kPatience, Idle).ok());
  });
}

TEST_P(RanksTest, RanksKnowTheirHost) {
  OnRanks(GetParam(), [](Ranks* ranks) {
    EXPECT_THAT(ranks->hosts(), SizeIs(1));
    EXPECT_THAT(ranks->host_of_rank(), SizeIs(ranks->size()));
    EXPECT_THAT(ranks->host_of_rank(), Each(0));
    EXPECT_EQ(ranks->local_rank(), ranks->rank());
  });
}

TEST_P(RanksTest, OneStatusForAll) {
  OnRanks(GetParam(), [](Ranks* ranks) {
    EXPECT_TRUE(ranks->AllOk(absl::OkStatus(), kPatience, Idle).ok());
    const bool is_last = ranks->rank() + 1 == ranks->size();
    const absl::Status status = ranks->AllOk(
        is_last ? absl::NotFoundError("no such thing") : absl::OkStatus(), kPatience, Idle);
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(status.message(), HasSubstr("no such thing"));
    if (ranks->size() > 1) {
      EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("rank ", ranks->size() - 1)));
    }
    ranks->Part(kPatience);
  });
}

TEST_P(RanksTest, KnobsThatDifferAreNamedOnAllRanks) {
  OnRanks(GetParam(), [](Ranks* ranks) {
    KnobList knobs = {{"bytes", 5}, {"slots", 7}};
    EXPECT_TRUE(ranks->Agree(absl::OkStatus(), knobs, kPatience).ok());
    const bool is_last = ranks->rank() > 0 && ranks->rank() + 1 == ranks->size();
    if (is_last) knobs[1].second = 8;
    const absl::Status status = ranks->Agree(absl::OkStatus(), knobs, kPatience);
    if (is_last) knobs = {{"bytes", 5}, {"slots", 7}, {"of its own", 1}};
    const absl::Status more = ranks->Agree(absl::OkStatus(), knobs, kPatience);
    EXPECT_EQ(status.ok(), ranks->size() == 1);
    EXPECT_EQ(more.ok(), ranks->size() == 1);
    if (ranks->size() == 1) return;
    EXPECT_EQ(status.message(), absl::StrCat("the ranks were given different slots: rank 0 has 7, ",
                                             "rank ", ranks->size() - 1, " has 8"));
    EXPECT_THAT(std::string(more.message()), HasSubstr("rank 0 has 0, rank"));
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, RanksTest, testing::Values(1, 2, 3, 8));

TEST(RanksFaultTest, ARankThatDoesNotComeIsNamed) {
  OnRanks(3, [](Ranks* ranks) {
    if (ranks->rank() == 1) return;
    const absl::Status status = ranks->Barrier(absl::Seconds(2), Idle);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(EndsAll(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("rank 1"));
  });
}

TEST(RanksFaultTest, AnErrorOfWhatGoesOnMeanwhileEndsTheWait) {
  OnRanks(2, [](Ranks* ranks) {
    if (ranks->rank() == 1) return;
    const absl::Status status =
        ranks->Barrier(kPatience, [] { return absl::DataLossError("the session has failed"); });
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  });
}

TEST(PlannedNodesTest, NodesAreAsPlanned) {
  auto fabrics = MakeLocalFabric(5);
  ASSERT_TRUE(fabrics.ok());
  const Fabric* const same = fabrics->front().get();
  fabrics->front() = PlanNodes(std::move(fabrics->front()), 0);
  EXPECT_EQ(fabrics->front().get(), same);
  for (auto& fabric : *fabrics) {
    EXPECT_THAT(PlanNodes(std::move(fabric), 2)->node_of_rank(), ElementsAre(0, 0, 1, 1, 2));
  }
}

}  // namespace
}  // namespace sluice::bench
