// Transfers over a transport that starts operations in groups: every rank must come to the same
// groups in the same order, or they wait for each other for ever.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "session/grouped_fabric.h"
#include "session/job.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

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
      TensorTransfer tensor;
      tensor.name = absl::StrCat(rows, " rows");
      tensor.shape = {rows * size, 192};
      tensor.src = MakeLayout({size}, Ranks(0, size), "P(sum)");
      tensor.dst = MakeLayout({size}, Ranks(0, size), dst);
      spec.tensors.push_back(tensor);
    }
    RunRanksInGroups(size, [&](Rank& self) { RunThroughOneSlot(self, spec); });
    RunRanksInGroups(size, [&](Rank& self) {
      const std::unique_ptr<Session> session = OpenSession(self, SessionOptions());
      ASSERT_NE(session, nullptr);
      Bound bound = CompileBound(session.get(), spec);
      ASSERT_NE(bound.transfer, nullptr);
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
    Schedule schedule;
    schedule.seed = seed;
    schedule.cancel_percent = seed % 2 == 0 ? 40 : 0;
    RunRanksInGroups(size, [&](Rank& self) { RunSchedule(self, job, schedule); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " with " << size << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, GroupedTest, testing::ValuesIn(oracle::JobSizes({1, 2, 3, 5, 8})),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace sluice::session_test
