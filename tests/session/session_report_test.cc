// Reports: of a session, and of the buckets that others ask about.
#include "session/session_report.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/peers/bucket_report.h"
#include "session/peers/watch_record.h"
#include "session/run_transport.h"
#include "session/with_peers.h"
#include "session/world.h"
#include "transport/loopback/loopback.h"

namespace sluice {
namespace {

using session_test::Rank;
using session_test::RankPeers;
using session_test::RunRanks;
using session_test::RunRanksOn;
using session_test::WithPeers;

WireReport Wire(int rank, const std::string& wire, const std::string& why,
                const std::string& fell_back_from = "", const std::string& library = "") {
  return {
      .rank = rank, .wire = wire, .library = library, .why = why, .fell_back_from = fell_back_from};
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
    const auto session = Session::Create(std::move(self.fabric), SessionOptions()).value();
    const SessionReport report = session->Report();
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
    const auto session =
        Session::Create(std::move(self.fabric), {.progress_thread = true, .direct = false}).value();
    const SessionReport report = session->Report();
    ASSERT_EQ(report.wires.size(), 1u);
    EXPECT_EQ(report.wires[0].wire, "loopback");
    EXPECT_THAT(report.wires[0].why, testing::HasSubstr("SessionOptions::direct is false"));
    self.meet();
  });
}

// As if the kernel did not let ranks copy.
TEST(SessionReportTest, SaysWhatTheKernelDoesNotAllow) {
  WithPeers(2, [](RankPeers* own) {
    Peers& peers = own->peers;
    auto node = DirectNode::Connect(
        own->rank(), peers.fabric()->node_of_rank(),
        [&](const absl::Status& status, const std::string& record) {
          return peers.Exchange(status, record, "Create: direct");
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
                testing::HasSubstr("other memory goes by loopback, because the kernel"));
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

BucketId Bucket(uint64_t run, uint64_t round) {
  return BucketId({.run = run, .round = round, .src = 4, .dst = 7});
}

const BucketQuestion kQuestion = {Bucket(3, 2), 5, 0};

std::string Describe(const BucketReport& report, const Silence& silence = {}) {
  return DescribeReport(kQuestion, report, silence).text();
}

BucketReport In(BucketState state) {
  BucketReport report;
  report.state = state;
  return report;
}

BucketReport In(Stage stage) {
  BucketReport report = In(BucketState::kInStage);
  report.stage = stage;
  return report;
}

TEST(BucketReportTest, EachStateHasItsWords) {
  EXPECT_EQ(Describe({}), "answers, but does not know of it");
  BucketReport report = In(BucketState::kRunNotStarted);
  EXPECT_EQ(Describe(report), "has not started run 3: it has started none");
  report.last_run = 2;
  EXPECT_EQ(Describe(report), "has not started run 3: the last it has started is 2");
  report = In(BucketState::kOtherTransfer);
  report.transfer = 9;
  EXPECT_EQ(Describe(report), "has started transfer 9 as run 3");
  EXPECT_EQ(Describe(In(BucketState::kNotFed)), "has not come to it");
  EXPECT_EQ(Describe(In(BucketState::kWaitsForChannel)),
            "has not admitted it: its channel is full");
  EXPECT_EQ(Describe(In(BucketState::kWaitsForBudget)),
            "has not admitted it: it waits for the budget");
  report = In(BucketState::kWaitsForMemory);
  report.tensor = "embed";
  EXPECT_EQ(Describe(report), "has not admitted it: it waits for memory for tensor 'embed'");
  EXPECT_EQ(Describe(In(BucketState::kNotCalled)), "answers, and has not called");
  EXPECT_EQ(Describe(In(BucketState::kCalled)), "has called");
  report = In(BucketState::kRunNotStarted);
  report.call = "Compile";
  EXPECT_EQ(Describe(report), "has not started run 3: it has started none, and waits in Compile");
  EXPECT_EQ(Describe(In(static_cast<BucketState>(99))),
            "gives an answer that this rank does not know");
}

TEST(BucketReportTest, EachStageHasItsWords) {
  EXPECT_EQ(Describe(In(Stage::kMoving)), "has it in stage moving");
  EXPECT_EQ(Describe(In(Stage::kDone)), "has done its part of it");
  EXPECT_EQ(Describe(In(Stage::kFailed)), "has failed in it");
  EXPECT_EQ(Describe(In(Stage::kCancelled)), "has cancelled it");
}

TEST(BucketReportTest, AnOlderBucketAndASilentRankAreNamed) {
  BucketReport report = In(BucketState::kNotFed);
  report.oldest = Bucket(1, 8);
  EXPECT_EQ(Describe(report, {.rank = 6, .hops = 2}),
            "has not come to it; its oldest bucket is run 1 window 0 round 8 phase 0, rank 4 -> 7, "
            "n 0, held up by rank 6, which does not answer");
  report.oldest = kQuestion.id;
  EXPECT_EQ(Describe(report), "has not come to it");
}

TEST(ShortTextTest, KeepsAsMuchAsFits) {
  EXPECT_EQ(ShortText<5>("abc").ToString(), "abc");
  EXPECT_EQ(ShortText<5>("abcde").ToString(), "abcde");
  EXPECT_EQ(ShortText<5>("abcdefg").ToString(), "abcde");
  // As another rank may have sent it.
  ShortText<5> damaged("abcde");
  damaged.bytes = 1000;
  EXPECT_EQ(damaged.ToString(), "abcde");
  damaged.bytes = -1;
  EXPECT_EQ(damaged.ToString(), "abcde");
}

TEST(WatchRecordTest, AnAnswerCrossesWhole) {
  const BucketReport report = {.state = BucketState::kWaitsForMemory,
                               .stage = Stage::kFilling,
                               .last_run = 11,
                               .transfer = 12,
                               .tensor = std::string(300, 't'),
                               .oldest = Bucket(2, 13),
                               .moves = 14,
                               .call = "LoadCheckpoint"};
  const AnswerRecord sent = AnswerOf(15, report, {16, 17}, {18, 19}, {20, 21});
  AnswerRecord got;
  ASSERT_TRUE(Decode(BytesOf(sent), &got));
  EXPECT_EQ(got.number, 15u);
  EXPECT_EQ(got.silence.rank, 16);
  EXPECT_EQ(got.silence.hops, 17);
  EXPECT_EQ(got.heard_of.rank, 18);
  EXPECT_EQ(got.heard_of.count, 19);
  EXPECT_EQ(got.lateness.rank, 20);
  EXPECT_EQ(got.lateness.times, 21);
  const BucketReport read = ReportOf(got);
  EXPECT_EQ(read.state, BucketState::kWaitsForMemory);
  EXPECT_EQ(read.stage, Stage::kFilling);
  EXPECT_EQ(read.last_run, 11);
  EXPECT_EQ(read.transfer, 12);
  EXPECT_EQ(read.tensor, std::string(200, 't'));
  EXPECT_EQ(read.oldest, Bucket(2, 13));
  EXPECT_EQ(read.moves, 14);
  EXPECT_EQ(read.call, "LoadCheckpoint");
}

TEST(WatchRecordTest, NoOldestBucketStaysNone) {
  EXPECT_FALSE(ReportOf(AnswerOf(1, {}, {}, {}, {})).oldest.has_value());
}

TEST(WatchRecordTest, OtherRecordsArePassedOver) {
  QuestionRecord question;
  question.number = 21;
  question.question = kQuestion;
  const absl::Span<const std::byte> bytes = BytesOf(question);
  std::vector<std::byte> post(bytes.begin(), bytes.end());
  QuestionRecord got;
  AlarmRecord alarm;
  EXPECT_FALSE(Decode(post, &alarm));
  EXPECT_FALSE(Decode(absl::MakeConstSpan(post).first(post.size() - 1), &got));
  EXPECT_FALSE(Decode({}, &got));
  ASSERT_TRUE(Decode(post, &got));
  EXPECT_EQ(got.number, 21u);
  EXPECT_EQ(got.question, kQuestion);
  // Of the same length, and of another kind or format.
  post[offsetof(WatchHeader, kind)] = std::byte{3};
  EXPECT_FALSE(Decode(post, &got));
  post[offsetof(WatchHeader, kind)] = std::byte{2};
  EXPECT_TRUE(Decode(post, &got));
  post[offsetof(WatchHeader, format)] ^= std::byte{1};
  EXPECT_FALSE(Decode(post, &got));
}

}  // namespace
}  // namespace sluice
