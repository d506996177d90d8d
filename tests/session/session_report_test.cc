// What a session says of its wires.
#include "session/session_report.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "session/world.h"
#include "transport/loopback/loopback.h"

namespace sluice {
namespace {

using session_test::Rank;
using session_test::RunRanks;
using session_test::RunRanksOn;
using testing::HasSubstr;

WireReport Wire(int rank, const std::string& wire, const std::string& why,
                const std::string& fell_back_from = "", const std::string& library = "") {
  WireReport report;
  report.rank = rank;
  report.wire = wire;
  report.library = library;
  report.why = why;
  report.fell_back_from = fell_back_from;
  return report;
}

TEST(SessionReportTest, TextJoinsEqualRanks) {
  SessionReport report;
  EXPECT_EQ(report.ToString(), "rank 0 is alone");
  report.rank = 1;
  report.wires = {Wire(0, "direct", "one node"), Wire(2, "direct", "one node"),
                  Wire(3, "tcp", "no device", "ucx"), Wire(4, "direct", "one node"),
                  Wire(5, "ucx", "a device", "", "UCX 1.13.1")};
  EXPECT_EQ(report.ToString(),
            "rank 1 to ranks 0, 2, 4: direct (one node); to rank 3: tcp, not ucx (no device); to "
            "rank 5: ucx by UCX 1.13.1 (a device)");
}

TEST(SessionReportTest, DirectWithinTheNodeAndMessagesBeyond) {
  RunRanksOn(MakeLoopbackFabrics({0, 0, 1}), [](Rank& self) {
    const auto session = Session::Create(std::move(self.fabric), SessionOptions());
    ASSERT_TRUE(session.ok()) << session.status();
    const SessionReport report = (*session)->Report();
    EXPECT_EQ(report.rank, self.rank);
    ASSERT_EQ(report.wires.size(), 2u);
    for (const WireReport& wire : report.wires) {
      EXPECT_NE(wire.rank, self.rank);
      EXPECT_EQ(wire.node, wire.rank / 2);
      const bool is_near = wire.rank / 2 == self.rank / 2;
      EXPECT_EQ(wire.wire, is_near ? "direct" : "loopback");
      EXPECT_EQ(wire.fell_back_from, "");
      EXPECT_FALSE(wire.why.empty());
    }
    self.meet();
  });
}

TEST(SessionReportTest, WithoutDirectCopies) {
  RunRanks(2, [](Rank& self) {
    SessionOptions options;
    options.direct = false;
    options.progress_thread = true;
    const auto session = Session::Create(std::move(self.fabric), options);
    ASSERT_TRUE(session.ok()) << session.status();
    const SessionReport report = (*session)->Report();
    ASSERT_EQ(report.wires.size(), 1u);
    EXPECT_EQ(report.wires[0].wire, "loopback");
    EXPECT_THAT(report.wires[0].why, HasSubstr("SessionOptions::direct is false"));
    self.meet();
  });
}

class NoHost final : public Peers::Host {
 public:
  bool AdvanceStreams() override { return false; }
  bool has_streams() const override { return false; }
  int64_t next_due_ns() const override { return INT64_MAX; }
  void Fail(const absl::Status&) override {}
  bool Settle() override { return true; }
};

// As if the kernel did not let ranks copy.
TEST(SessionReportTest, SaysWhatTheKernelDoesNotAllow) {
  RunRanks(2, [](Rank& self) {
    NoHost host;
    Peers peers(std::move(self.fabric), absl::Seconds(60), &host);
    auto node = DirectNode::Connect(
        self.rank, peers.fabric()->node_of_rank(),
        [&](const absl::Status& own, const std::string& record) {
          return peers.Exchange(own, record, "Create: direct");
        },
        KernelCopies::kNever);
    ASSERT_TRUE(node.ok()) << node.status();
    RunTransport carrier;
    auto direct = std::make_unique<DirectTransport>(*std::move(node));
    carrier.direct = direct.get();
    carrier.transport = std::move(direct);
    const SessionReport report = MakeSessionReport(*peers.fabric(), SessionOptions(), carrier);
    ASSERT_EQ(report.wires.size(), 1u);
    EXPECT_EQ(report.wires[0].wire, "direct");
    EXPECT_THAT(report.wires[0].why,
                HasSubstr("other memory goes by loopback, because the kernel"));
    self.meet();
  });
}

TEST(SessionReportTest, SaysWhyDirectCopiesAreRefused) {
  RunRanks(2, [](Rank& self) {
    RunTransport carrier;
    carrier.why_not_direct = "rank 1 cannot map what rank 0 shares";
    const SessionReport report = MakeSessionReport(*self.fabric, SessionOptions(), carrier);
    ASSERT_EQ(report.wires.size(), 1u);
    EXPECT_EQ(report.wires[0].wire, "loopback");
    EXPECT_EQ(report.wires[0].fell_back_from, "direct");
    EXPECT_EQ(report.wires[0].why, carrier.why_not_direct);
  });
}

}  // namespace
}  // namespace sluice
