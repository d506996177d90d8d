// The contract over a loopback whose sends end at once, as eager messages do: the tests that are
// there to notice that must fail, and no other one. Runs the suite, and turns its outcome round.
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "transport/loopback/loopback.h"
#include "transport/thread_ranks.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

void RunEagerly(const ContractScript& script) {
  RunOnThreads({0, 0, 1}, MakeHostRank, script, LoopbackSends::kEager);
}

const auto kWorld = testing::Values(ContractWorld{"Eager", RunEagerly});
INSTANTIATE_TEST_SUITE_P(Loopback, TransportContract, kWorld, ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Loopback, GroupContract, kWorld, ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Loopback, FabricContract, kWorld, ContractWorldName);

// All that look at when a send ends.
const std::set<std::string> kExpected = {
    "LargeSendsHoldTheirRankUntilTheirReceivesStart",
    "ManySendsOfSeveralLengthsWaitTogether",
    "ManySmallSendsWaitTogether",
    "RelaysHoldWhatTheNextHasNotAskedFor",
    "SendsEndOnlyWhenTheirReceivesStart",
    "SendsOfRowsEndOnlyWhenTheirReceivesStart",
    "ServesARankThatStartsLate",
};

// What a test has said.
class Listener final : public testing::EmptyTestEventListener {
 public:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    if (std::string(result.message()).find("ended too early") == std::string::npos) {
      others_.emplace_back(result.message());
    }
  }
  // Failures that are about something else.
  const std::vector<std::string>& others() const { return others_; }

 private:
  std::vector<std::string> others_;
};

int Judge(const Listener& listener) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::set<std::string> failed;
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      const std::string name = test.name();
      if (test.result()->Failed()) failed.insert(name.substr(0, name.find('/')));
    }
  }
  for (const std::string& name : failed) {
    if (kExpected.count(name) == 0) std::printf("failed, though it should not: %s\n", name.c_str());
  }
  for (const std::string& name : kExpected) {
    if (failed.count(name) == 0) std::printf("does not notice it: %s\n", name.c_str());
  }
  for (const std::string& message : listener.others()) {
    std::printf("failed for another reason: %s\n", message.c_str());
  }
  if (failed != kExpected || !listener.others().empty()) return 1;
  std::printf("sends that end too early are noticed by %zu tests\n", failed.size());
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto* const listener = new sluice::Listener;
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(listener);
  return RUN_ALL_TESTS() == 0 ? 1 : sluice::Judge(*listener);
}
