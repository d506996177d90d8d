// Groups of buckets: the text by which ranks agree on them, and their way to a transport.
#include "session/transfer/group_line.h"

#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/planned.h"
#include "session/transfer/group_need_text.h"

namespace sluice {
namespace {

using session_test::FromZeroToOne;
using session_test::PlanFor;

// ---- Groups on their way to a transport: when they are fed, when they start, and in which order.

// Run 1 on rank 1: four buckets of one channel, which make up two groups.
class GroupLineTest : public testing::Test {
 protected:
  GroupLineTest() : transfer_(PlanFor(1, {FromZeroToOne("a", {64})})) {
    transfer_->cut = {.rounds = 2, .phases = 0};
    run_ = std::make_unique<TransferRun>(transfer_.get(), &events_);
    run_->Reset(1, StartOptions());
    run_->Release();
  }
  // Feeds as many buckets as may be.
  int Feed(GroupLine* line, int64_t slots) {
    int fed = 0;
    for (; run_->CanFeed() && line->MayFeed(*run_, slots); ++fed) run_->Fed();
    return fed;
  }
  BucketId IdOf(size_t index) const { return transfer_->plan().buckets[index].id.WithRun(1); }

  std::unique_ptr<CompiledTransfer> transfer_;
  std::deque<RunEvent> events_;
  std::unique_ptr<TransferRun> run_;
};

TEST_F(GroupLineTest, AGroupIsFedOnceAllOfItFindsSlots) {
  GroupLine line;
  EXPECT_EQ(line.Describe(), "");
  EXPECT_EQ(Feed(&line, 1), 0);
  EXPECT_EQ(Feed(&line, 3), 2);
  EXPECT_EQ(line.Describe(), "group 1 of 1: 0 of 2 buckets admitted, 0 ended");
  EXPECT_EQ(Feed(&line, 4), 2);
  EXPECT_EQ(line.Describe(), "group 1 of 2: 0 of 2 buckets admitted, 0 ended");
}

TEST_F(GroupLineTest, HopsOfAGroupBeginInOrder) {
  GroupLine line;
  ASSERT_EQ(Feed(&line, 4), 4);
  EXPECT_TRUE(line.BeginHop(0).ok());
  EXPECT_TRUE(line.BeginHop(2).ok());
  for (const int hop : {2, 1}) {
    const absl::Status status = line.BeginHop(hop);
    EXPECT_THAT(status, Fails(absl::StatusCode::kInternal,
                              "bucket " + IdOf(0).ToString() + " comes after its hop 2"));
  }
  line.Ended(run_.get(), 0);
  line.Ended(run_.get(), 1);
  EXPECT_TRUE(line.BeginHop(0).ok());  // the next group's
}

TEST_F(GroupLineTest, BucketsOfNoGroupAreRefused) {
  GroupLine line;
  ASSERT_EQ(Feed(&line, 2), 2);
  EXPECT_DEATH(line.Admitted(run_.get(), 2), "a bucket of no group");
}

// ---- What ranks tell each other of groups comes back as it was.

TEST(GroupNeedTextTest, ComesBack) {
  GroupNeed need;
  need.round = 1;
  need.phase = 2;
  need.channel_round = 3;
  need.channel_phase = 4;
  need.operations_round = 5;
  need.operations_phase = 6;
  need.operation_bytes = int64_t{7} << 40;
  const auto read = NeedFrom(TextOf(need), 0).value();
  EXPECT_EQ(read.round, 1);
  EXPECT_EQ(read.phase, 2);
  EXPECT_EQ(read.channel_round, 3);
  EXPECT_EQ(read.channel_phase, 4);
  EXPECT_EQ(read.operations_round, 5);
  EXPECT_EQ(read.operations_phase, 6);
  EXPECT_EQ(read.operation_bytes, int64_t{7} << 40);
}

TEST(GroupNeedTextTest, AnotherFormNamesTheRank) {
  for (const char* text : {"", "1 2 3", "1 2 3 4 5 6 7 8", "1 2 3 4 5 6 x", "1  3 4 5 6 7"}) {
    const absl::Status status = NeedFrom(text, 11).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << text;
    EXPECT_THAT(status.message(), testing::HasSubstr("rank 11"));
  }
}

}  // namespace
}  // namespace sluice
