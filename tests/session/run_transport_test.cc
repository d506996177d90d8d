// What carries a session's transfers, by its options, and memory that all ranks of a node map.
#include "session/run_transport.h"

#include <cstddef>

#include "gtest/gtest.h"
#include "session/world.h"

namespace sluice {
namespace {

using session_test::Rank;
using session_test::RunRanks;

class NoHost final : public Peers::Host {
 public:
  bool AdvanceStreams() override { return false; }
  bool has_streams() const override { return false; }
  int64_t next_due_ns() const override { return INT64_MAX; }
  void Fail(const absl::Status&) override {}
  bool Settle() override { return true; }
};

TEST(RunTransportTest, OptionsDecideWhetherCopiesAreDirect) {
  RunRanks(2, [](Rank& self) {
    NoHost host;
    Peers peers(std::move(self.fabric), absl::Seconds(60), &host);
    for (const bool direct : {true, false}) {
      const SessionOptions options = {.direct = direct};
      const auto opened = OpenRunTransport(&peers, options, nullptr).value();
      EXPECT_EQ(opened.direct != nullptr, direct);
      EXPECT_EQ(opened.transport->name(), direct ? "direct" : "loopback");
      self.meet();
    }
  });
}

TEST(RunTransportTest, DirectRanksShareMemoryAndOthersHaveTheirOwn) {
  RunRanks(2, [](Rank& self) {
    NoHost host;
    const int rank = self.rank;
    Peers peers(std::move(self.fabric), absl::Seconds(60), &host);
    const auto opened = OpenRunTransport(&peers, SessionOptions(), nullptr).value();
    for (DirectTransport* const direct : {opened.direct, static_cast<DirectTransport*>(nullptr)}) {
      const auto memory = AllocateSharedMemory(&peers, direct, 100).value();
      ASSERT_NE(memory, nullptr);
      EXPECT_EQ(memory.get()[99], std::byte{});
      memory.get()[99] = std::byte{5};
      const auto refused = AllocateSharedMemory(&peers, direct, rank == 1 ? -1 : 100);
      EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
      self.meet();
    }
    EXPECT_TRUE(peers.poison().ok());
    self.meet();
  });
}

}  // namespace
}  // namespace sluice
