// Buckets on their way to their end, in stream order.
#include "session/base/ending_line.h"

#include "fakes/log_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class EndingLineTest : public testing::Test {
 protected:
  EndingLineTest() : device_({}, &log_, "slot"), copies_(&device_) { line_.Reserve(64); }

  OperationsLog log_;
  LogDevice device_;
  CopyQueue copies_;
  EndingLine line_;
};

TEST_F(EndingLineTest, AMarkEndsWhatWasThereWhenItBegan) {
  EXPECT_TRUE(line_.all_marked());
  ASSERT_TRUE(line_.Mark(&copies_).ok());
  EXPECT_THAT(log_.Take(), IsEmpty());
  line_.Add(5);
  line_.Add(3);
  EXPECT_FALSE(line_.all_marked());
  ASSERT_TRUE(line_.Mark(&copies_).ok());
  line_.Add(4);
  ASSERT_TRUE(line_.Mark(&copies_).ok());
  ASSERT_TRUE(line_.Mark(&copies_).ok());
  EXPECT_THAT(log_.Take(), ElementsAre("mark 1", "mark 2"));
  EXPECT_THAT(line_.First(), ElementsAre(5, 3));
  line_.DropFirst();
  EXPECT_EQ(line_.marks(), 1);
  EXPECT_THAT(line_.First(), ElementsAre(4));
  line_.DropFirst();
  EXPECT_EQ(line_.marks(), 0);
  EXPECT_TRUE(line_.all_marked());
}

TEST_F(EndingLineTest, SoManyMarksAreUnderWayAndNoMore) {
  for (size_t slot = 0; slot <= CopyQueue::kMarksMax; ++slot) {
    line_.Add(slot);
    ASSERT_TRUE(line_.Mark(&copies_).ok());
  }
  EXPECT_EQ(line_.marks(), CopyQueue::kMarksMax);
  EXPECT_FALSE(line_.all_marked());
  line_.DropFirst();
  ASSERT_TRUE(line_.Mark(&copies_).ok());
  EXPECT_TRUE(line_.all_marked());
}

}  // namespace
}  // namespace sluice
