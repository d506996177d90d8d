// What ranks tell each other of groups comes back as it was.
#include "session/transfer/group_need_text.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(GroupNeedTextTest, ComesBack) {
  GroupNeed need;
  need.round = 1;
  need.phase = 2;
  need.channel_round = 3;
  need.channel_phase = 4;
  need.operations_round = 5;
  need.operations_phase = 6;
  need.operation_bytes = int64_t{7} << 40;
  const absl::StatusOr<GroupNeed> read = NeedFrom(TextOf(need), 0);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->round, 1);
  EXPECT_EQ(read->phase, 2);
  EXPECT_EQ(read->channel_round, 3);
  EXPECT_EQ(read->channel_phase, 4);
  EXPECT_EQ(read->operations_round, 5);
  EXPECT_EQ(read->operations_phase, 6);
  EXPECT_EQ(read->operation_bytes, int64_t{7} << 40);
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
