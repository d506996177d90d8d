// Moves that are held back at random, against a list of what each channel has begun.
#include "engine/move_order.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using testing::HasSubstr;

BucketId Id(uint64_t n) { return BucketId({.run = 3, .round = n}); }

TEST(MoveOrderTest, WhatHasNotBegunHoldsBackItsChannelAlone) {
  MoveOrder order;
  order.Reserve(2, 4);
  ASSERT_TRUE(order.Add(2, 0, Id(5)).ok());
  ASSERT_TRUE(order.Add(0, 0, Id(6)).ok());
  ASSERT_TRUE(order.Add(3, 1, Id(4)).ok());
  EXPECT_TRUE(order.MayBegin(2));
  EXPECT_FALSE(order.MayBegin(0));
  EXPECT_TRUE(order.MayBegin(3));
  EXPECT_EQ(order.After(2), 0);
  EXPECT_EQ(order.After(0), MoveOrder::kNone);
  ASSERT_TRUE(order.Begin(2, 1).ok());
  EXPECT_TRUE(order.MayBegin(0));
  EXPECT_EQ(order.RoundsAllowed(0), 1);
  // One that has no messages holds back nothing once it is over.
  ASSERT_TRUE(order.Add(1, 0, Id(7)).ok());
  EXPECT_FALSE(order.MayBegin(1));
  order.End(0);
  EXPECT_TRUE(order.MayBegin(1));
  EXPECT_EQ(order.After(2), 1);
}

TEST(MoveOrderTest, AMoveThatComesAfterALaterOneIsNamed) {
  MoveOrder order;
  order.Reserve(8, 2);
  ASSERT_TRUE(order.Add(0, 7, Id(6)).ok());
  ASSERT_TRUE(order.Begin(0, 1).ok());
  order.End(0);
  for (const uint64_t n : {uint64_t{5}, uint64_t{6}}) {
    const absl::Status status = order.Add(1, 7, Id(n));
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_EQ(status.message(), "bucket " + Id(n).ToString() +
                                    " comes to move in channel 7 after bucket " + Id(6).ToString());
  }
  EXPECT_TRUE(order.Add(1, 6, Id(5)).ok());
}

TEST(MoveOrderTest, AMoveThatBeginsBeforeAnEarlierOneIsNamed) {
  MoveOrder order;
  order.Reserve(1, 2);
  ASSERT_TRUE(order.Add(1, 0, Id(1)).ok());
  ASSERT_TRUE(order.Add(0, 0, Id(2)).ok());
  ASSERT_TRUE(order.Begin(1, 2).ok());
  ASSERT_TRUE(order.Begin(0, 2).ok());
  const absl::Status status = order.Begin(0, 3);
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_EQ(status.message(), "bucket " + Id(2).ToString() +
                                  " begins round 3 of its messages in channel 0 before bucket " +
                                  Id(1).ToString() + ", which has begun 2");
}

// Buckets come in order and are parked: each may begin its next round, or end, only when chance
// lets it. The oracle keeps every move that is not over in one list per channel.
class ParkedMoves {
 public:
  explicit ParkedMoves(uint64_t seed) : random_(seed) {
    order_.Reserve(kChannels, kSlots);
    for (size_t slot = 0; slot < kSlots; ++slot) free_.push_back(slot);
  }

  void Step() {
    if (!free_.empty() && Below(3) == 0) return Add();
    const size_t channel = Below(kChannels);
    std::vector<Move>& moves = channels_[channel];
    if (moves.empty()) return;
    const size_t at = Below(moves.size());
    Move& move = moves[at];
    if (move.rounds == move.rounds_of_it || Below(20) == 0) return End(channel, at);
    // None before it may have begun fewer rounds than it will have.
    const bool may = std::all_of(moves.begin(), moves.begin() + static_cast<ptrdiff_t>(at),
                                 [&](const Move& each) { return each.rounds > move.rounds; });
    EXPECT_EQ(order_.RoundsAllowed(move.slot) > move.rounds, may);
    const absl::Status status = order_.Begin(move.slot, move.rounds + 1);
    EXPECT_EQ(status.ok(), may) << status;
    if (!may) {
      ++refused_;
      EXPECT_THAT(std::string(status.message()), HasSubstr(move.id.ToString()));
      return;
    }
    BucketId& last = last_begun_[{channel, ++move.rounds}];
    EXPECT_LT(last, move.id) << "round " << move.rounds << " of channel " << channel;
    last = move.id;
  }

  int refused() const { return refused_; }
  size_t rounds_begun() const { return last_begun_.size(); }

 private:
  static constexpr size_t kChannels = 3;
  static constexpr size_t kSlots = 12;

  struct Move {
    BucketId id;
    size_t slot = 0;
    int rounds_of_it = 0;
    int rounds = 0;
  };

  size_t Below(size_t n) { return random_() % n; }
  void Add() {
    const size_t pick = Below(free_.size());
    const size_t slot = std::exchange(free_[pick], free_.back());
    free_.pop_back();
    const size_t channel = Below(kChannels);
    const BucketId id = Id(++count_);
    ASSERT_TRUE(order_.Add(slot, static_cast<int>(channel), id).ok());
    channels_[channel].push_back({id, slot, 1 + static_cast<int>(Below(3)), 0});
    ExpectNeighbours(channel);
  }
  void End(size_t channel, size_t at) {
    std::vector<Move>& moves = channels_[channel];
    free_.push_back(moves[at].slot);
    order_.End(moves[at].slot);
    moves.erase(moves.begin() + static_cast<ptrdiff_t>(at));
    ExpectNeighbours(channel);
  }
  void ExpectNeighbours(size_t channel) {
    const std::vector<Move>& moves = channels_[channel];
    for (size_t i = 0; i < moves.size(); ++i) {
      const int after =
          i + 1 < moves.size() ? static_cast<int>(moves[i + 1].slot) : MoveOrder::kNone;
      EXPECT_EQ(order_.After(moves[i].slot), after);
    }
  }

  std::mt19937_64 random_;
  MoveOrder order_;
  std::vector<size_t> free_;
  std::array<std::vector<Move>, kChannels> channels_;
  uint64_t count_ = 0;
  int refused_ = 0;
  std::map<std::pair<size_t, int>, BucketId> last_begun_;
};

TEST(MoveOrderTest, WhateverIsParkedRoundsBeginInTheOrderOfIds) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    ParkedMoves moves(seed);
    for (int step = 0; step < 2000; ++step) moves.Step();
    // Each channel has begun its three rounds, and some were too early.
    EXPECT_EQ(moves.rounds_begun(), 9);
    EXPECT_GT(moves.refused(), 0);
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
}

}  // namespace
}  // namespace sluice
