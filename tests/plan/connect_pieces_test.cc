// Pieces of halves: each byte is sent once, and in as few rounds as can be.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "plan/connect/pieces.h"

namespace sluice {
namespace {

using testing::HasSubstr;

HalfLabel Label(uint64_t bytes, uint64_t hash = 0) { return {bytes, {hash, hash}}; }

TEST(PieceScheduleTest, EveryByteOnceInTheFewestRounds) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    oracle::Dice dice(seed);
    const int ranks = static_cast<int>(dice.Between(1, 20));
    const int64_t piece_bytes = dice.Between(1, 50);
    std::vector<HalfLabel> labels;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto hash = static_cast<uint64_t>(dice.Between(0, 3));
      labels.push_back(Label(hash * 117, hash));
    }
    const auto schedule = PieceSchedule::Make(labels, piece_bytes, 1 << 20);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    std::vector<std::vector<int>> sent;
    int64_t fewest = 0;
    for (const PieceSchedule::Group& group : schedule->groups()) {
      sent.emplace_back(group.label.bytes, 0);
      const int64_t pieces =
          (static_cast<int64_t>(group.label.bytes) + piece_bytes - 1) / piece_bytes;
      const auto holders = static_cast<int64_t>(group.ranks.size());
      EXPECT_EQ(holders, std::count(labels.begin(), labels.end(), group.label));
      fewest = std::max(fewest, (pieces + holders - 1) / holders);
    }
    if (sent.size() == 1) fewest = 0;
    EXPECT_EQ(schedule->rounds(), fewest);
    for (int64_t round = 0; round < schedule->rounds(); ++round) {
      for (int rank = 0; rank < ranks; ++rank) {
        const auto piece = schedule->PieceOf(rank, round);
        EXPECT_EQ(schedule->groups()[piece.group].label, labels[static_cast<size_t>(rank)]);
        EXPECT_LE(piece.end - piece.begin, static_cast<size_t>(piece_bytes));
        for (size_t i = piece.begin; i < piece.end; ++i) ++sent[piece.group][i];
      }
    }
    for (const std::vector<int>& group : sent) {
      if (sent.size() > 1) {
        EXPECT_THAT(group, testing::Each(1)) << "seed " << seed;
      }
    }
  }
}

TEST(PieceScheduleTest, WhatTheRanksSayMayNotAddUp) {
  for (const uint64_t bytes : {uint64_t{1001}, uint64_t{1} << 63, ~uint64_t{0}}) {
    const std::vector<HalfLabel> labels = {Label(5), Label(bytes, 1), Label(bytes, 2)};
    const auto refused = PieceSchedule::Make(labels, 100, 1000);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(refused.status().message()),
                HasSubstr("more than 1000 bytes: rank 1 alone has"));
  }
  const std::vector<HalfLabel> many = {Label(400, 1), Label(400, 2), Label(400, 3), Label(400, 1)};
  EXPECT_THAT(std::string(PieceSchedule::Make(many, 100, 1199).status().message()),
              HasSubstr("ranks 0, 3 alone have 400"));
  EXPECT_TRUE(PieceSchedule::Make(many, 100, 1200).ok());
}

}  // namespace
}  // namespace sluice
