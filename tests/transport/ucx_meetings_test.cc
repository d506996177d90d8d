// Announced messages and receives: who meets whom.
#include "transport/ucx/ucx_meetings.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace sluice {
namespace {

using Announced = UcxMeetings::Announced;

TEST(UcxMeetingsTest, MeetsInTheOrderOfEachRankAndTag) {
  UcxMeetings meetings(3);
  EXPECT_EQ(meetings.Announce({1, 7, 100, 1}), UcxMeetings::kWaits);
  EXPECT_EQ(meetings.Announce({1, 7, 200, 2}), UcxMeetings::kWaits);
  EXPECT_EQ(meetings.Announce({1, 8, 300, 3}), UcxMeetings::kWaits);
  EXPECT_EQ(meetings.Announce({2, 7, 400, 1}), UcxMeetings::kWaits);
  Announced message;
  ASSERT_TRUE(meetings.Receive(2, 7, 0, &message));
  EXPECT_EQ(message.bytes, 400u);
  ASSERT_TRUE(meetings.Receive(1, 7, 1, &message));
  EXPECT_EQ(message.send, 1u);
  ASSERT_TRUE(meetings.Receive(1, 7, 2, &message));
  EXPECT_EQ(message.send, 2u);
  EXPECT_FALSE(meetings.Receive(1, 7, 3, &message));
  EXPECT_FALSE(meetings.Receive(1, 7, 4, &message));
  EXPECT_EQ(meetings.Announce({2, 7, 1, 5}), UcxMeetings::kWaits);
  EXPECT_EQ(meetings.Announce({1, 7, 1, 6}), 3);
  EXPECT_EQ(meetings.Announce({1, 7, 1, 7}), 4);
  EXPECT_EQ(meetings.Announce({1, 7, 1, 8}), UcxMeetings::kWaits);
}

TEST(UcxMeetingsTest, TakesReceivesBackAndLeavesMessages) {
  UcxMeetings meetings(3);
  Announced message;
  EXPECT_FALSE(meetings.Receive(1, 0, 10, &message));
  EXPECT_FALSE(meetings.Receive(1, 0, 11, &message));
  EXPECT_FALSE(meetings.Receive(1, 1, 12, &message));
  EXPECT_FALSE(meetings.Receive(2, 0, 13, &message));
  EXPECT_EQ(meetings.Announce({2, 5, 9, 1}), UcxMeetings::kWaits);
  std::vector<int> slots;
  meetings.TakeReceives(1, &slots);
  std::sort(slots.begin(), slots.end());
  EXPECT_EQ(slots, (std::vector<int>{10, 11, 12}));
  slots.clear();
  meetings.TakeReceives(UcxMeetings::kAllRanks, &slots);
  EXPECT_EQ(slots, std::vector<int>{13});
  EXPECT_EQ(meetings.Announce({1, 0, 9, 2}), UcxMeetings::kWaits);
  EXPECT_TRUE(meetings.Receive(2, 5, 1, &message));
  EXPECT_TRUE(meetings.Receive(1, 0, 2, &message));
}

TEST(UcxMeetingsTest, ForgetsWhatARankHasAnnounced) {
  UcxMeetings meetings(3);
  for (int src : {1, 2}) EXPECT_EQ(meetings.Announce({src, 4, 8, 1}), UcxMeetings::kWaits);
  meetings.ForgetAnnounced(1);
  Announced message;
  EXPECT_FALSE(meetings.Receive(1, 4, 0, &message));
  EXPECT_TRUE(meetings.Receive(2, 4, 1, &message));
}

TEST(UcxMeetingsTest, RefusesARankThatAnnouncesTooMuch) {
  UcxMeetings meetings(3);
  for (int n = 0; n < UcxMeetings::kMaxAnnounced; ++n) {
    ASSERT_EQ(meetings.Announce({1, n % 100, 8, 1}), UcxMeetings::kWaits);
  }
  EXPECT_EQ(meetings.Announce({1, 0, 8, 1}), UcxMeetings::kRefused);
  EXPECT_EQ(meetings.Announce({2, 0, 8, 1}), UcxMeetings::kWaits);
  Announced message;
  EXPECT_TRUE(meetings.Receive(1, 99, 0, &message));
  EXPECT_EQ(meetings.Announce({1, 0, 8, 1}), UcxMeetings::kWaits);
}

// Against queues of the standard library.
TEST(UcxMeetingsTest, DoesWhatQueuesWouldDo) {
  using Line = std::pair<int, int>;
  std::mt19937 random(7);
  const auto pick = [&random](int count) {
    return std::uniform_int_distribution<int>(0, count - 1)(random);
  };
  UcxMeetings meetings(4);
  std::map<Line, std::deque<uint64_t>> messages;
  std::map<Line, std::deque<int>> receives;
  for (int step = 0; step < 100000; ++step) {
    const Line line = {pick(4), pick(3)};
    const int what = pick(1000);
    if (what == 0) {
      std::vector<int> slots;
      std::vector<int> expected;
      meetings.TakeReceives(line.first, &slots);
      for (auto& [key, waiting] : receives) {
        if (key.first != line.first) continue;
        expected.insert(expected.end(), waiting.begin(), waiting.end());
        waiting.clear();
      }
      std::sort(slots.begin(), slots.end());
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(slots, expected);
    } else if (what == 1) {
      meetings.ForgetAnnounced(line.first);
      for (auto& [key, waiting] : messages) {
        if (key.first == line.first) waiting.clear();
      }
    } else if (what % 2 == 0) {
      Announced message;
      const bool met = meetings.Receive(line.first, line.second, step, &message);
      ASSERT_EQ(met, !messages[line].empty());
      if (!met) {
        receives[line].push_back(step);
        continue;
      }
      ASSERT_EQ(message.send, messages[line].front());
      messages[line].pop_front();
    } else {
      const auto send = static_cast<uint64_t>(step);
      const int slot = meetings.Announce({line.first, line.second, 8, send});
      if (receives[line].empty()) {
        ASSERT_EQ(slot, UcxMeetings::kWaits);
        messages[line].push_back(send);
        continue;
      }
      ASSERT_EQ(slot, receives[line].front());
      receives[line].pop_front();
    }
  }
}

}  // namespace
}  // namespace sluice
