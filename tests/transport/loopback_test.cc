// The contract over loopback, with a thread for each rank, which run in turn or at once.
#include "transport/loopback/loopback.h"

#include <deque>
#include <memory>
#include <semaphore>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "sluice/fabric.h"
#include "tensor/error_text.h"
#include "transport/thread_ranks.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

std::vector<int> Nodes(int size) {
  std::vector<int> nodes(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) nodes[static_cast<size_t>(rank)] = rank / 2;
  return nodes;
}

// Threads of which one runs at a time, each until it waits: always in the same order.
class Turns {
 public:
  explicit Turns(int size) : has_ended_(static_cast<size_t>(size)) {
    for (int rank = 0; rank < size; ++rank) gates_.emplace_back(rank == 0 ? 1 : 0);
  }

  void Begin(size_t rank) { gates_[rank].acquire(); }
  void Pass(size_t rank) {
    LetNextGo(rank);
    gates_[rank].acquire();
  }
  void End(size_t rank) {
    has_ended_[rank] = true;
    LetNextGo(rank);
  }

 private:
  void LetNextGo(size_t rank) {
    size_t next = (rank + 1) % gates_.size();
    while (has_ended_[next] && next != rank) next = (next + 1) % gates_.size();
    gates_[next].release();
  }

  std::deque<std::binary_semaphore> gates_;
  std::vector<bool> has_ended_;  // of the one whose turn it is
};

void RunInTurn(int size, const ContractScript& script) {
  Turns turns(size);
  RunOnThreads(Nodes(size), MakeHostRank, [&](ContractRank& r) {
    const auto rank = static_cast<size_t>(r.rank());
    turns.Begin(rank);
    const absl::Cleanup end = [&turns, rank] { turns.End(rank); };
    r.PauseBy([&turns, rank] { turns.Pass(rank); });
    script(r);
  });
}

std::vector<ContractWorld> Worlds() {
  std::vector<ContractWorld> worlds;
  const auto is_enough = [](int size) { return oracle::kSanitized && size > 3; };
  for (const int size : {2, 3, 5, 8, 16}) {
    if (is_enough(size)) break;
    worlds.push_back({absl::StrCat("InTurn", size),
                      [size](const ContractScript& script) { RunInTurn(size, script); }});
  }
  for (const int size : {2, 3, 8}) {
    if (is_enough(size)) break;
    worlds.push_back({absl::StrCat("OnThreads", size), [size](const ContractScript& script) {
                        RunOnThreads(Nodes(size), MakeHostRank, script);
                      }});
  }
  return worlds;
}

INSTANTIATE_TEST_SUITE_P(Loopback, TransportContract, testing::ValuesIn(Worlds()),
                         ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Loopback, PartContract, testing::ValuesIn(Worlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Loopback, GroupContract, testing::ValuesIn(Worlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Loopback, FabricContract, testing::ValuesIn(Worlds()), ContractWorldName);

TEST(LoopbackTest, OneRankGathersFromItself) {
  const auto fabrics = MakeLoopbackFabrics({0});
  const std::vector<std::byte> record = {std::byte{1}, std::byte{2}};
  ASSERT_TRUE(fabrics[0]->StartAllGather(record).ok());
  std::vector<std::byte> all;
  ASSERT_EQ(fabrics[0]->PollAllGather(&all, nullptr).value_or(false), true);
  EXPECT_EQ(all, record);
}

TEST(LoopbackTest, GivesTheNodesItWasGiven) {
  const auto fabrics = MakeLoopbackFabrics({4, 4, 7});
  ASSERT_EQ(fabrics.size(), 3u);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(fabrics[static_cast<size_t>(rank)]->rank(), rank);
    EXPECT_EQ(fabrics[static_cast<size_t>(rank)]->node_of_rank(),
              absl::MakeConstSpan(std::vector<int>{4, 4, 7}));
  }
}

TEST(LoopbackTest, ReportsLengthsThatDiffer) {
  auto fabrics = MakeLoopbackFabrics({0, 0});
  ContractRank src(std::move(fabrics[0]));
  ContractRank dst(std::move(fabrics[1]));
  ASSERT_TRUE(src.transport().Reserve(2).ok());
  ASSERT_TRUE(dst.transport().Reserve(2).ok());
  const TransportOp longer = dst.Receive(0, 3, dst.Buffer(9), 9);
  const TransportOp shorter = dst.Receive(0, 3, dst.Buffer(7), 7);
  dst.Start({longer, shorter});
  std::byte* data = src.FilledBuffer(8, 1);
  src.Start({src.Send(1, 3, data, 8), src.Send(1, 3, data, 8)});
  src.Poll(2);
  dst.Poll(2);
  ASSERT_EQ(src.ended(), 2u);
  ASSERT_EQ(dst.ended(), 2u);
  EXPECT_TRUE(src.Outcome(1).ok());
  EXPECT_EQ(dst.Outcome(longer.cookie),
            MakeError(absl::StatusCode::kDataLoss, "receive of 9 bytes from ", RankInWords(0),
                      " to ", RankInWords(1), ", tag 3: the message has 8 bytes"));
  EXPECT_EQ(dst.Outcome(shorter.cookie),
            MakeError(absl::StatusCode::kDataLoss, "receive of 7 bytes from ", RankInWords(0),
                      " to ", RankInWords(1), ", tag 3: the message has 8 bytes"));
  dst.CheckEnd();
}

TEST(LoopbackTest, DestroyedTransportWithdrawsItsReceives) {
  auto fabrics = MakeLoopbackFabrics({0, 0});
  ContractRank src(std::move(fabrics[0]));
  ASSERT_TRUE(src.transport().Reserve(1).ok());
  std::vector<std::byte> memory(8, std::byte{7});
  {
    const auto dst = fabrics[1]->OpenTransport();
    ASSERT_TRUE(dst.ok());
    ASSERT_TRUE((*dst)->Reserve(1).ok());
    const TransportOp receive = {TransportOp::Kind::kReceive, 0, 0, memory.data(), 8, 1};
    ASSERT_TRUE((*dst)->Start({receive}).ok());
  }
  src.Start({src.Send(1, 0, src.FilledBuffer(8, 3), 8)});
  src.Poll(1);
  EXPECT_EQ(src.ended(), 0u);
  EXPECT_EQ(memory, std::vector<std::byte>(8, std::byte{7}));
}

TEST(LoopbackTest, TransportsOutliveTheirFabric) {
  auto fabrics = MakeLoopbackFabrics({0, 0});
  std::vector<std::unique_ptr<Transport>> ends;
  for (auto& fabric : fabrics) {
    EXPECT_TRUE(fabric->OpenTransport().ok());  // and is destroyed at once
    auto second = fabric->OpenTransport();
    ASSERT_TRUE(second.ok());
    ends.push_back(*std::move(second));
    ASSERT_TRUE(ends.back()->Reserve(1).ok());
  }
  fabrics.clear();
  std::byte sent{42}, received{0};
  ASSERT_TRUE(ends[0]->Start({{TransportOp::Kind::kSend, 1, 0, &sent, 1, 1}}).ok());
  ASSERT_TRUE(ends[1]->Start({{TransportOp::Kind::kReceive, 0, 0, &received, 1, 2}}).ok());
  EXPECT_EQ(received, sent);
}

TEST(LoopbackTest, AnyThreadMayUseIt) {
  EXPECT_TRUE(MakeLoopbackFabrics({0})[0]->CheckOtherThread().ok());
}

TEST(LocalFabricTest, HasOneFabricForEachRank) {
  const auto fabrics = MakeLocalFabric(3);
  ASSERT_TRUE(fabrics.ok()) << fabrics.status();
  ASSERT_EQ(fabrics->size(), 3u);
  for (int rank = 0; rank < 3; ++rank) {
    const Fabric& fabric = *(*fabrics)[static_cast<size_t>(rank)];
    EXPECT_EQ(fabric.rank(), rank);
    EXPECT_EQ(fabric.size(), 3);
    for (const int node : fabric.node_of_rank()) EXPECT_EQ(node, 0);
  }
}

TEST(LocalFabricTest, RefusesNoRanksAndTooMany) {
  for (const int ranks : {-1, 0, 4097}) {
    EXPECT_TRUE(absl::IsInvalidArgument(MakeLocalFabric(ranks).status())) << ranks;
  }
  EXPECT_TRUE(MakeLocalFabric(1).ok());
}

TEST(LoopbackDeathTest, RefusesOperationsThatCannotBe) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  auto fabrics = MakeLoopbackFabrics({0, 0});
  ContractRank rank(std::move(fabrics[0]));
  ASSERT_TRUE(rank.transport().Reserve(4).ok());
  std::byte* data = rank.Buffer(8);
  EXPECT_DEATH(rank.Start({rank.Send(0, 0, data, 8)}), "itself");
  EXPECT_DEATH(rank.Start({rank.Send(2, 0, data, 8)}), "not a rank");
  EXPECT_DEATH(rank.Start({rank.Send(-1, 0, data, 8)}), "not a rank");
  EXPECT_DEATH(rank.Start({rank.Send(1, kMaxTransportTag + 1, data, 8)}), "tag");
  EXPECT_DEATH(rank.Start({rank.Send(1, 0, data, kMaxTransportBytes + 1)}), "too long");
  EXPECT_DEATH(rank.Start({rank.Send(1, 0, nullptr, 8)}), "memory");
}

}  // namespace
}  // namespace sluice
