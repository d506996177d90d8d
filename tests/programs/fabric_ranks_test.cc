// Exchanges over a fabric's all-gathers: records of all lengths, errors, and ranks that do not
// come.
#include "job/fabric_ranks.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/planned_nodes.h"
#include "sluice/local.h"

namespace sluice::bench {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
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
      auto made = FabricRanks::Create(std::move(mine), kPatience);
      ASSERT_TRUE(made.ok()) << made.status();
      work(made->get());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Differs between ranks, in every byte's neighbourhood.
std::string RecordOf(int rank, size_t bytes) {
  std::string record;
  for (size_t i = 0; i < bytes; ++i) {
    record += static_cast<char>(31 * static_cast<size_t>(rank) + i * 7 + i / 251);
  }
  return record;
}

class FabricRanksTest : public testing::TestWithParam<int> {};

TEST_P(FabricRanksTest, RecordsOfAnyLengthComeWhole) {
  OnRanks(GetParam(), [](Ranks* ranks) {
    // Around the bytes that the beginning has room for, and around whole pieces.
    for (const size_t bytes : {0, 1, 119, 120, 121, 2119, 2120, 2121, 50000}) {
      std::vector<std::string> expected;
      for (int rank = 0; rank < ranks->size(); ++rank) {
        // The last rank says nothing, and the first one most.
        const size_t length = bytes / static_cast<size_t>(rank + 1);
        expected.push_back(RecordOf(rank, rank + 1 == ranks->size() && rank > 0 ? 0 : length));
      }
      const std::string& mine = expected[static_cast<size_t>(ranks->rank())];
      const auto all = ranks->AllGather(mine, kPatience, Idle);
      ASSERT_TRUE(all.ok()) << all.status();
      EXPECT_EQ(*all, expected) << bytes;
      const auto first = ranks->GatherToFirst(mine, kPatience, Idle);
      ASSERT_TRUE(first.ok()) << first.status();
      if (ranks->rank() == 0) {
        EXPECT_EQ(*first, expected) << bytes;
      } else {
        EXPECT_THAT(*first, IsEmpty());
      }
      EXPECT_TRUE(ranks->Barrier(kPatience, Idle).ok());
    }
  });
}

TEST_P(FabricRanksTest, RanksKnowTheirHost) {
  OnRanks(GetParam(), [](Ranks* ranks) {
    EXPECT_THAT(ranks->hosts(), SizeIs(1));
    EXPECT_THAT(ranks->host_of_rank(), SizeIs(ranks->size()));
    EXPECT_THAT(ranks->host_of_rank(), Each(0));
    EXPECT_EQ(ranks->local_rank(), ranks->rank());
  });
}

TEST_P(FabricRanksTest, OneStatusForAll) {
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

INSTANTIATE_TEST_SUITE_P(Sizes, FabricRanksTest, testing::Values(1, 2, 3, 8));

TEST(FabricRanksFaultTest, ARankThatDoesNotComeIsNamed) {
  OnRanks(3, [](Ranks* ranks) {
    if (ranks->rank() == 1) return;
    const absl::Status status = ranks->Barrier(absl::Seconds(2), Idle);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(EndsAll(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("rank 1"));
  });
}

TEST(FabricRanksFaultTest, AnErrorOfWhatGoesOnMeanwhileEndsTheWait) {
  OnRanks(2, [](Ranks* ranks) {
    if (ranks->rank() == 1) return;
    const absl::Status status =
        ranks->Barrier(kPatience, [] { return absl::DataLossError("the session has failed"); });
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  });
}

TEST(PlannedNodesTest, NodesAreAsPlannedAndAllElseIsTheFabrics) {
  auto fabrics = MakeLocalFabric(5);
  ASSERT_TRUE(fabrics.ok());
  const Fabric* const same = fabrics->front().get();
  fabrics->front() = PlanNodes(std::move(fabrics->front()), 0);
  EXPECT_EQ(fabrics->front().get(), same);
  std::vector<std::unique_ptr<Fabric>> planned;
  for (auto& fabric : *fabrics) planned.push_back(PlanNodes(std::move(fabric), 2));
  for (size_t rank = 0; rank < planned.size(); ++rank) {
    EXPECT_EQ(planned[rank]->rank(), static_cast<int>(rank));
    EXPECT_THAT(planned[rank]->node_of_rank(), ElementsAre(0, 0, 1, 1, 2));
    const std::byte mine{static_cast<uint8_t>(rank + 1)};
    EXPECT_TRUE(planned[rank]->StartAllGather({&mine, 1}).ok());
  }
  for (auto& fabric : planned) {
    std::vector<std::byte> all;
    absl::StatusOr<bool> done = false;
    while (done.ok() && !*done) done = fabric->PollAllGather(&all, nullptr);
    ASSERT_TRUE(done.ok()) << done.status();
    EXPECT_THAT(all,
                ElementsAre(std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}));
    EXPECT_TRUE(fabric->CheckRanks().ok());
  }
}

}  // namespace
}  // namespace sluice::bench
