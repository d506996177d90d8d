// Offers and receives that wait for each other: which meets which, and what is taken back.
#include "transport/tag_lines.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "session/heap_bytes.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using Lines = TagLines<uint64_t>;

std::vector<int> TakeReceives(Lines* lines, int peer) {
  std::vector<int> taken;
  lines->TakeReceives(peer, [&](int receive) { taken.push_back(receive); });
  return taken;
}
std::vector<uint64_t> TakeOffers(Lines* lines, int peer) {
  std::vector<uint64_t> taken;
  lines->TakeOffers(peer, [&](uint64_t offer) { taken.push_back(offer); });
  return taken;
}

TEST(TagLinesTest, MeetInTheOrderOfEachPeerAndTag) {
  Lines lines;
  lines.AddOffer(1, 7, 100);
  lines.AddOffer(1, 7, 200);
  lines.AddOffer(1, 8, 300);
  lines.AddOffer(2, 7, 400);
  EXPECT_EQ(lines.TakeOffer(2, 7), 400u);
  EXPECT_EQ(lines.TakeOffer(1, 7), 100u);
  EXPECT_EQ(lines.TakeOffer(1, 7), 200u);
  EXPECT_EQ(lines.TakeOffer(1, 7), std::nullopt);
  lines.AddReceive(1, 7, 3);
  lines.AddReceive(1, 7, 4);
  EXPECT_EQ(lines.TakeReceive(2, 7), std::nullopt);
  EXPECT_EQ(lines.TakeReceive(1, 8), std::nullopt);
  EXPECT_EQ(lines.TakeReceive(1, 7), 3);
  EXPECT_EQ(lines.TakeReceive(1, 7), 4);
  EXPECT_EQ(lines.TakeReceive(1, 7), std::nullopt);
  EXPECT_EQ(lines.TakeOffer(1, 8), 300u);
}

TEST(TagLinesTest, AnOfferAndItsReceiveNeverBothWait) {
  Lines lines;
  lines.AddOffer(1, 7, 100);
  EXPECT_DEATH(lines.AddReceive(1, 7, 0), "both wait");
}

TEST(TagLinesTest, TakesReceivesBackAndLeavesOffers) {
  Lines lines;
  for (const int receive : {10, 11}) lines.AddReceive(1, 0, receive);
  lines.AddReceive(1, 1, 12);
  lines.AddReceive(2, 0, 13);
  lines.AddOffer(2, 5, 9);
  EXPECT_THAT(TakeReceives(&lines, 1), UnorderedElementsAre(10, 11, 12));
  EXPECT_THAT(TakeReceives(&lines, Lines::kAllPeers), ElementsAre(13));
  EXPECT_THAT(TakeReceives(&lines, Lines::kAllPeers), ElementsAre());
  // An offer that comes now has nothing to meet.
  EXPECT_EQ(lines.TakeReceive(1, 0), std::nullopt);
  EXPECT_EQ(lines.TakeOffer(2, 5), 9u);
}

TEST(TagLinesTest, ForgetsAPeerThatIsGone) {
  Lines lines;
  for (const int peer : {0, 1, 2}) {
    lines.AddOffer(peer, 4, static_cast<uint64_t>(peer));
    lines.AddReceive(peer, 5, peer);
  }
  EXPECT_THAT(TakeOffers(&lines, 0), ElementsAre(0));
  lines.Forget(1);
  EXPECT_EQ(lines.TakeOffer(1, 4), std::nullopt);
  EXPECT_EQ(lines.TakeReceive(1, 5), std::nullopt);
  EXPECT_THAT(TakeReceives(&lines, Lines::kAllPeers), UnorderedElementsAre(0, 2));
  EXPECT_THAT(TakeOffers(&lines, Lines::kAllPeers), ElementsAre(2));
}

TEST(TagLinesTest, RefusesAPeerThatOffersTooMuch) {
  Lines lines(/*most_offers=*/1000);
  for (int n = 0; n < 1000; ++n) ASSERT_TRUE(lines.AddOffer(1, n % 100, 8));
  EXPECT_FALSE(lines.AddOffer(1, 0, 8));
  EXPECT_TRUE(lines.AddOffer(2, 0, 8));
  EXPECT_EQ(lines.TakeOffer(1, 99), 8u);
  EXPECT_TRUE(lines.AddOffer(1, 0, 8));
  EXPECT_FALSE(lines.AddOffer(1, 0, 8));
  lines.Forget(1);
  EXPECT_TRUE(lines.AddOffer(1, 0, 8));
}

// Tags that are never used again must not make the table grow either.
TEST(TagLinesTest, AllocatesNothingForWhatThereIsRoomFor) {
  constexpr int kWaiting = 100;
  Lines lines;
  lines.Reserve(kWaiting, /*peers=*/3);
  const int64_t before = session_test::AllocationCount();
  for (int round = 0; round < 1000; ++round) {
    for (int i = 0; i < kWaiting; ++i) lines.AddReceive(i % 3, round * kWaiting + i, i);
    for (int i = 0; i < kWaiting / 2; ++i) lines.TakeReceive(i % 3, round * kWaiting + i);
    lines.Forget(Lines::kAllPeers);
    for (int i = 0; i < kWaiting; ++i) lines.AddOffer(i % 3, 7, 1);
    while (lines.TakeOffer(1, 7)) continue;
    lines.Forget(Lines::kAllPeers);
  }
  EXPECT_EQ(session_test::AllocationCount(), before);
}

// Against queues of the standard library. An offer has one number, and so has a receive: none is
// ever given twice.
TEST(TagLinesTest, DoesWhatQueuesWouldDo) {
  using Line = std::pair<int, int>;
  std::mt19937 random(7);
  const auto pick = [&random](int count) {
    return std::uniform_int_distribution<int>(0, count - 1)(random);
  };
  Lines lines;
  std::map<Line, std::deque<uint64_t>> offers;
  std::map<Line, std::deque<int>> receives;
  const auto take_all = [](auto* queues, int peer, auto taken) {
    decltype(taken) expected;
    for (auto& [key, waiting] : *queues) {
      if (key.first != peer) continue;
      expected.insert(expected.end(), waiting.begin(), waiting.end());
      waiting.clear();
    }
    std::sort(taken.begin(), taken.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(taken, expected);
  };
  for (int step = 0; step < 100000; ++step) {
    const Line line = {pick(4), pick(3)};
    const int what = pick(1000);
    if (what == 0) {
      take_all(&receives, line.first, TakeReceives(&lines, line.first));
    } else if (what == 1) {
      take_all(&offers, line.first, TakeOffers(&lines, line.first));
    } else if (what % 2 == 0) {
      std::deque<uint64_t>& waiting = offers[line];
      const std::optional<uint64_t> offer = lines.TakeOffer(line.first, line.second);
      ASSERT_EQ(offer, waiting.empty() ? std::nullopt : std::optional(waiting.front()));
      if (offer) {
        waiting.pop_front();
        continue;
      }
      lines.AddReceive(line.first, line.second, step);
      receives[line].push_back(step);
    } else {
      std::deque<int>& waiting = receives[line];
      const std::optional<int> receive = lines.TakeReceive(line.first, line.second);
      ASSERT_EQ(receive, waiting.empty() ? std::nullopt : std::optional(waiting.front()));
      if (receive) {
        waiting.pop_front();
        continue;
      }
      lines.AddOffer(line.first, line.second, static_cast<uint64_t>(step));
      offers[line].push_back(static_cast<uint64_t>(step));
    }
  }
}

}  // namespace
}  // namespace sluice
