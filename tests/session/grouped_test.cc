// Transfers over a transport that starts operations in groups: every rank must come to the same
// groups in the same order, or they wait for each other for ever.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "session/launch.h"
#include "session/world.h"
#include "sluice/fabric.h"
#include "sluice/transport.h"
#include "transport/loopback/loopback.h"
#include "transport/passing_fabric.h"

namespace sluice::session_test {
namespace {

// Starts operations in groups, without tags, as NCCL does. A group begins when all of the one
// before has ended. Operations between two ranks meet in the order in which they are started;
// lengths that differ are an error.
class GroupedTransport final : public Transport {
 public:
  explicit GroupedTransport(std::unique_ptr<Transport> inner)
      : Transport({.name = "grouped", .in_groups = true, .takes_rows = false}),
        inner_(std::move(inner)) {}

  absl::Status Reserve(int capacity) override { return inner_->Reserve(capacity); }
  absl::Status UseStaging(absl::Span<std::byte> staging) override {
    return inner_->UseStaging(staging);
  }

  absl::Status Start(absl::Span<const TransportOp> ops) override {
    Group& group = waiting_.emplace_back(ops.begin(), ops.end());
    for (TransportOp& op : group) op.tag = 0;
    count_ += static_cast<int>(ops.size());
    return StartNext();
  }

  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override {
    absl::StatusOr<int> count = inner_->Poll(events);
    if (!count.ok()) return count;
    count_ -= *count;
    if (absl::Status status = StartNext(); !status.ok()) return status;
    return count;
  }

  void Withdraw() override {
    for (const Group& group : waiting_) count_ -= static_cast<int>(group.size());
    waiting_.clear();
    inner_->Withdraw();
  }
  int outstanding() const override { return count_; }

 private:
  using Group = std::vector<TransportOp>;

  absl::Status StartNext() {
    if (inner_->outstanding() > 0 || waiting_.empty()) return absl::OkStatus();
    const Group group = std::move(waiting_.front());
    waiting_.pop_front();
    return inner_->Start(group);
  }

  std::unique_ptr<Transport> inner_;
  std::deque<Group> waiting_;
  int count_ = 0;
};

class GroupedFabric final : public PassingFabric {
 public:
  using PassingFabric::PassingFabric;

  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport() override {
    absl::StatusOr<std::unique_ptr<Transport>> inner = inner_->OpenTransport();
    if (!inner.ok()) return inner;
    return std::make_unique<GroupedTransport>(*std::move(inner));
  }
};

// As RunRanks, with such fabrics.
void RunRanksInGroups(int size, const RankBody& body) {
  std::vector<int> node_of_rank;
  for (int rank = 0; rank < size; ++rank) node_of_rank.push_back(rank / 2);
  std::vector<std::unique_ptr<Fabric>> fabrics = MakeLoopbackFabrics(node_of_rank);
  for (std::unique_ptr<Fabric>& fabric : fabrics)
    fabric = std::make_unique<GroupedFabric>(std::move(fabric));
  RunRanksOn(std::move(fabrics), body);
}

class GroupedTest : public testing::TestWithParam<int> {};

TEST_P(GroupedTest, EveryByteIsRight) {
  const int size = GetParam();
  for (const uint64_t seed : oracle::Seeds(480 / (size + 3))) {
    const RandomJob job = MakeRandomJob(seed * 100 + static_cast<uint64_t>(size), size);
    RunRanksInGroups(size, [&](Rank& self) { RunJob(self, job, seed); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " with " << size << " ranks";
  }
}

TEST_P(GroupedTest, OneSlotIsEnough) {
  const int size = GetParam();
  for (const TransferSpec& spec : {Ring(size, 64), AllToAll(size, 16 << 10)}) {
    RunRanksInGroups(size, [&](Rank& self) { RunThroughOneSlot(self, spec); });
  }
}

// Ranks that add up for their node, and get the result too: each has several messages of a bucket.
TEST_P(GroupedTest, SumsOfNodesComeBack) {
  const int size = GetParam();
  const char* const dsts[] = {"R", "S(0)", "S(1)"};
  for (const char* dst : absl::MakeConstSpan(dsts).first(
           static_cast<size_t>(size < 5 ? oracle::Sampled(3) : oracle::Thinned(3)))) {
    TransferSpec spec;
    for (const int64_t rows : {3, 96}) {
      spec.tensors.push_back({.name = absl::StrCat(rows, " rows"),
                              .shape = {rows * size, 192},
                              .src = MakeLayout({size}, Ranks(0, size), "P(sum)"),
                              .dst = MakeLayout({size}, Ranks(0, size), dst)});
    }
    RunRanksInGroups(size, [&](Rank& self) { RunThroughOneSlot(self, spec); });
    RunRanksInGroups(size, [&](Rank& self) {
      const std::unique_ptr<Session> session = OpenSession(self, SessionOptions());
      Bound bound = CompileBound(session.get(), spec);
      for (uint64_t round = 0; round < 2; ++round) RunOnce(session.get(), &bound, round);
      EXPECT_TRUE(session->Close().ok());
    });
    ASSERT_FALSE(HasFailure()) << dst;
  }
}

TEST_P(GroupedTest, RunsAtOnceAndCancelledOnes) {
  const int size = GetParam();
  for (const uint64_t seed : oracle::Seeds(160 / (size + 3))) {
    const RandomJob job = MakeRandomJob(seed * 1000 + static_cast<uint64_t>(size), size);
    RunRanksInGroups(size, [&](Rank& self) {
      RunSchedule(self, job, {.seed = seed, .cancel_percent = seed % 2 == 0 ? 40 : 0});
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " with " << size << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, GroupedTest, testing::ValuesIn(oracle::JobSizes({1, 2, 3, 5, 8})),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace sluice::session_test
