// Random cancels: of several runs at once whose memory comes late or never, with events, on ranks
// that now and then stay away.
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "session/cancelled_runs.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

class CancelRandomTest : public testing::TestWithParam<int> {};

TEST_P(CancelRandomTest, EveryTensorThatIsReportedIsRight) {
  const int size = GetParam();
  int cancelled = 0;
  // Threads decide whether a cancel comes in time: there are more tries for as long as none did.
  for (size_t tried = 0; tried < oracle::Seeds(40).size() || (cancelled == 0 && tried < 500);
       ++tried) {
    const uint64_t seed = oracle::FirstSeed() + tried;
    const RandomJob job = MakeRandomJob(seed * 100 + static_cast<uint64_t>(size) + 50, size);
    std::vector<int> of_rank(static_cast<size_t>(size));
    RunRanks(size, [&](Rank& self) {
      of_rank[static_cast<size_t>(self.rank)] = RunCancelled(self, job, seed);
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " with " << size << " ranks";
    for (const int each : of_rank) cancelled += each;
  }
  EXPECT_GT(cancelled, 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, CancelRandomTest, testing::Values(2, 3, 5),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace sluice::session_test
