// Transfers over a transport that starts operations in groups: every rank must come to the same
// groups in the same order, or they wait for each other for ever.
#include <cstdint>
#include <string>

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
  const auto seeds = static_cast<uint64_t>(oracle::Sampled(480 / (size + 3)));
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
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

TEST_P(GroupedTest, RunsAtOnceAndCancelledOnes) {
  const int size = GetParam();
  const auto seeds = static_cast<uint64_t>(oracle::Sampled(160 / (size + 3)));
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const RandomJob job = MakeRandomJob(seed * 1000 + static_cast<uint64_t>(size), size);
    Schedule schedule;
    schedule.seed = seed;
    schedule.cancel_percent = seed % 2 == 0 ? 40 : 0;
    RunRanksInGroups(size, [&](Rank& self) { RunSchedule(self, job, schedule); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " with " << size << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, GroupedTest, testing::Values(1, 2, 3, 5, 8),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace sluice::session_test
