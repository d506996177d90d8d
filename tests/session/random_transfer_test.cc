// Random transfers over random meshes with random options, every byte verified.
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

class RandomTransferTest : public testing::TestWithParam<int> {};

TEST_P(RandomTransferTest, EveryByteIsRight) {
  const int size = GetParam();
  for (const uint64_t seed : oracle::Seeds(960 / (size + 3))) {
    const RandomJob job = MakeRandomJob(seed * 100 + static_cast<uint64_t>(size), size);
    RunRanks(size, [&](Rank& self) { RunJob(self, job, seed); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " with " << size << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, RandomTransferTest,
                         testing::ValuesIn(oracle::JobSizes({1, 2, 3, 5, 8, 16})),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace sluice::session_test
