// Closing after a failure, over loopback and directly.
#include "session/failed_close.h"

#include "gtest/gtest.h"
#include "transport/loopback/loopback.h"

namespace sluice::session_test {
namespace {

void OnRanks(const RankBody& body) {
  for (const int size : {2, 3, 5}) {
    RunRanks(size, body);
    for (const bool nodes_of_two : {false, true}) {
      std::vector<int> nodes;
      for (int rank = 0; rank < size; ++rank) nodes.push_back(nodes_of_two ? rank / 2 : 0);
      RunRanksOn(MakeLoopbackFabrics(nodes), body, true);
    }
  }
}

TEST(FailedCloseTest, OfARunThatOneRankDoesNotStart) {
  OnRanks([](Rank& self) { FailAndClose(self, Failing::kNeverStarts, false); });
}

TEST(FailedCloseTest, OfARunThatOneRankHasNoMemoryFor) {
  OnRanks([](Rank& self) { FailAndClose(self, Failing::kLateMemory, false); });
}

TEST(FailedCloseTest, WithAProgressThread) {
  OnRanks([](Rank& self) { FailAndClose(self, Failing::kNeverStarts, true); });
}

}  // namespace
}  // namespace sluice::session_test
