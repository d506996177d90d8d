// Frames on their way out: in order, whole, and forgotten once they have left.
#include "world/store/store_outbox.h"

#include <string>

#include "gtest/gtest.h"
#include "world/store/store_wire.h"

namespace sluice {
namespace {

std::string Frame(char fill, size_t bytes) {
  return EncodeFrame(StoreFrame::kReply, std::string(bytes, fill));
}

TEST(StoreOutboxTest, BytesLeaveInOrder) {
  StoreOutbox outbox;
  EXPECT_TRUE(outbox.empty());
  const std::string all = Frame('a', 10) + Frame('b', 0) + Frame('c', 300);
  outbox.Append(Frame('a', 10));
  outbox.Append(Frame('b', 0) + Frame('c', 300));
  std::string left;
  while (!outbox.empty()) {
    left += outbox.unsent().front();
    outbox.NoteSent(1);
  }
  EXPECT_EQ(left, all);
}

// One that always has some bytes to send, for as long as it lives.
TEST(StoreOutboxTest, KeepsLittleOfWhatHasLeft) {
  StoreOutbox outbox;
  std::string expected;
  std::string left;
  for (int i = 0; i < 5000; ++i) {
    const std::string frame = Frame(static_cast<char>('a' + i % 26), 10'000);
    outbox.Append(frame);
    expected += frame;
    const size_t goes = outbox.unsent().size() - (i % 2 == 0 ? 7000 : 3);
    left += std::string(outbox.unsent().substr(0, goes));
    outbox.NoteSent(goes);
    ASSERT_LE(outbox.capacity(), size_t{1} << 20) << i;
  }
  left += std::string(outbox.unsent());
  EXPECT_TRUE(left == expected);
}

TEST(StoreOutboxTest, DropsWhatHasNotBegunToLeave) {
  for (const size_t sent : {size_t{0}, size_t{1}, size_t{14}, size_t{15}, size_t{16}, size_t{30}}) {
    StoreOutbox outbox;
    const std::string all = Frame('a', 10) + Frame('b', 10) + Frame('c', 10);  // of 15 bytes
    outbox.Append(all);
    outbox.NoteSent(sent);
    const size_t begun = (sent + 14) / 15 * 15;
    EXPECT_EQ(outbox.DropUnbegun(), all.size() - begun) << sent;
    EXPECT_EQ(outbox.unsent(), all.substr(sent, begun - sent)) << sent;
    outbox.Append(Frame('e', 1));
    EXPECT_EQ(outbox.unsent(), all.substr(sent, begun - sent) + Frame('e', 1)) << sent;
  }
}

TEST(FrameAtTest, FindsTheFrameOfAByte) {
  const std::string frames = Frame('a', 0) + Frame('b', 7);  // of 5 and 12 bytes
  EXPECT_EQ(FrameAt(frames, 0).end, 5u);
  EXPECT_EQ(FrameAt(frames, 4).begin, 0u);
  EXPECT_EQ(FrameAt(frames, 5).begin, 5u);
  EXPECT_EQ(FrameAt(frames, 16).end, 17u);
  EXPECT_EQ(FrameAt(frames, 17).begin, 17u);
  EXPECT_EQ(FrameAt("", 0).end, 0u);
}

}  // namespace
}  // namespace sluice
