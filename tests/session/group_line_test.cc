// Groups on their way to a transport: when they are fed, when they start, and in which order.
#include "session/transfer/group_line.h"

#include <deque>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/planned.h"

namespace sluice {
namespace {

using session_test::FromZeroToOne;
using session_test::PlanFor;
using testing::HasSubstr;

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

TEST_F(GroupLineTest, AGroupStartsOnceAllOfItIsAdmitted) {
  GroupLine line;
  EXPECT_FALSE(line.first_is_complete());
  ASSERT_EQ(Feed(&line, 4), 4);
  line.Admitted(run_.get(), 0);
  line.Admitted(run_.get(), 2);
  EXPECT_FALSE(line.first_is_complete());
  line.Admitted(run_.get(), 1);
  EXPECT_TRUE(line.first_is_complete());
  EXPECT_TRUE(line.IsInFirst(run_.get(), 1));
  EXPECT_FALSE(line.IsInFirst(run_.get(), 2));
  EXPECT_FALSE(line.IsInFirst(nullptr, 1));
  line.Ended(run_.get(), 1);
  EXPECT_EQ(line.Describe(), "group 1 of 2: 2 of 2 buckets admitted, 1 ended");
  line.Ended(run_.get(), 0);
  EXPECT_EQ(line.Describe(), "group 1 of 1: 1 of 2 buckets admitted, 0 ended");
  EXPECT_TRUE(line.IsInFirst(run_.get(), 2));
}

TEST_F(GroupLineTest, HopsOfAGroupBeginInOrder) {
  GroupLine line;
  ASSERT_EQ(Feed(&line, 4), 4);
  EXPECT_TRUE(line.BeginHop(0).ok());
  EXPECT_TRUE(line.BeginHop(2).ok());
  for (const int hop : {2, 1}) {
    const absl::Status status = line.BeginHop(hop);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("bucket " + IdOf(0).ToString() + " comes after its hop 2"));
  }
  line.Ended(run_.get(), 0);
  line.Ended(run_.get(), 1);
  EXPECT_TRUE(line.BeginHop(0).ok());  // the next group's
}

TEST_F(GroupLineTest, ACutShortensAGroupOrDropsIt) {
  GroupLine line;
  ASSERT_EQ(Feed(&line, 4), 4);
  run_->CutAt(IdOf(2));
  line.Cut(*run_);
  line.Ended(run_.get(), 2);
  EXPECT_EQ(line.Describe(), "group 1 of 1: 0 of 2 buckets admitted, 0 ended");
  run_->CutAt(BucketId());
  line.Cut(*run_);
  EXPECT_EQ(line.Describe(), "");
}

TEST_F(GroupLineTest, BucketsOfNoGroupAreRefused) {
  GroupLine line;
  ASSERT_EQ(Feed(&line, 2), 2);
  EXPECT_DEATH(line.Admitted(run_.get(), 2), "a bucket of no group");
}

}  // namespace
}  // namespace sluice
