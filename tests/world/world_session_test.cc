// Sessions over worlds: whole jobs with every byte verified, and what is left of them after the
// world.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "main/environment_value.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "session/world.h"
#include "sluice/store.h"
#include "transport/ucx/ucx_worker.h"
#include "world/members.h"

namespace sluice::world_test {
namespace {

using session_test::MakeRandomJob;
using session_test::RandomJob;
using session_test::Rank;
using session_test::RunJob;
using session_test::RunRanksOn;

class WorldSessionTest : public testing::TestWithParam<int> {};

TEST_P(WorldSessionTest, EveryByteIsRight) {
  const int size = GetParam();
  for (const uint64_t seed : oracle::Seeds(48 / (size + 3))) {
    const RandomJob job = MakeRandomJob(seed * 100 + static_cast<uint64_t>(size), size);
    const bool direct = seed % 2 == 0;
    RunRanksOn(
        WorldFabrics(size), [&](Rank& self) { RunJob(self, job, seed); }, direct);
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " with " << size << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, WorldSessionTest, testing::Values(1, 2, 3, 5, 8, 16),
                         testing::PrintToStringParamName());

TEST(WorldSessionUcxTest, EveryByteIsRight) {
  if (oracle::kSanitized) GTEST_SKIP() << "UCX patches functions that sanitizers patch too";
  const EnvironmentValue tcp("UCX_TLS", "tcp");
  if (const auto worker = UcxWorker::Create(UcxTcp::kIfNamed); !worker.ok())
    GTEST_SKIP() << worker.status();
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const RandomJob job = MakeRandomJob(seed, 3);
    RunRanksOn(WorldFabrics(3, "ucx"), [&](Rank& self) { RunJob(self, job, seed); });
  }
}

TEST(WorldSessionReportTest, SaysWhatMessagesCrossBy) {
  const EnvironmentValue tcp("UCX_TLS", "tcp");
  std::vector<std::string> all_wires = {"tcp", "auto"};
  if (!oracle::kSanitized && UcxWorker::Create(UcxTcp::kIfNamed).ok()) all_wires.push_back("ucx");
  for (const std::string& wires : all_wires) {
    RunRanksOn(WorldFabrics(2, wires), [&](Rank& self) {
      SessionOptions options;
      options.direct = false;
      const auto session = Session::Create(std::move(self.fabric), options);
      ASSERT_TRUE(session.ok()) << session.status();
      const SessionReport report = (*session)->Report();
      ASSERT_EQ(report.wires.size(), 1u);
      const WireReport& wire = report.wires[0];
      EXPECT_EQ(wire.wire, wires == "ucx" ? "ucx" : "tcp") << report.ToString();
      EXPECT_EQ(wire.library.rfind("UCX 1.", 0) == 0, wires == "ucx") << report.ToString();
      EXPECT_EQ(wire.fell_back_from, "") << "both are on one node";
      const std::string why = wires == "auto" ? "all members share a node" : "member 0 (process ";
      EXPECT_NE(wire.why.find(why), std::string::npos) << report.ToString();
      self.meet();
    });
  }
}

// Two sessions of one world, one after the other and both at once.
TEST(WorldSessionsTest, SeveralOfOneWorld) {
  const auto worlds = JoinAll(AllOptions(MakeMemoryStore(), {{"trainer", 1}, {"server", 2}}));
  auto first = MakeFabrics(worlds);
  auto second = MakeFabrics(worlds);
  OnThreads(2, [&](int i) {
    const auto seed = static_cast<uint64_t>(i) + 1;
    const RandomJob job = MakeRandomJob(seed, 3);
    RunRanksOn(std::move(i == 0 ? first : second), [&](Rank& self) { RunJob(self, job, seed); });
  });
  const RandomJob job = MakeRandomJob(3, 3);
  RunRanksOn(MakeFabrics(worlds), [&](Rank& self) { RunJob(self, job, 3); });
}

}  // namespace
}  // namespace sluice::world_test
