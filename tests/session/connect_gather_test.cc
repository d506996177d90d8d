// Halves that are gathered: whole on every rank, whoever has which.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "plan/connect/half_code.h"
#include "session/connect/gather_halves.h"
#include "session/with_peers.h"

namespace sluice {
namespace {

using session_test::RankPeers;
using session_test::WithPeers;

std::string RandomBytes(oracle::Dice* dice, int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(dice->Between(0, 255)));
  return bytes;
}

TEST(GatherHalvesTest, EveryRankGetsEveryHalf) {
  for (const uint64_t seed : oracle::Seeds(40)) {
    oracle::Dice dice(seed);
    const int size = static_cast<int>(dice.Between(1, 9));
    std::vector<std::string> distinct;
    for (int64_t i = dice.Between(1, 4); i > 0; --i) {
      const int64_t length = dice.Pick<int64_t>({0, 1, 1099, 1100, 1101, 2200, 9000, 30000});
      distinct.push_back(RandomBytes(&dice, length));
    }
    std::vector<std::string> halves;
    for (int rank = 0; rank < size; ++rank) halves.push_back(dice.Pick(distinct));
    WithPeers(size, [&](RankPeers* own) {
      const auto gathered =
          GatherHalves(&own->peers, absl::OkStatus(), halves[static_cast<size_t>(own->rank())])
              .value();
      EXPECT_TRUE(gathered.loss.ok()) << gathered.loss;
      std::vector<bool> seen(static_cast<size_t>(size), false);
      int lowest = -1;
      for (const GatheredHalf& half : gathered.halves) {
        ASSERT_FALSE(half.ranks.empty());
        EXPECT_LT(lowest, half.ranks.front());
        lowest = half.ranks.front();
        for (const int rank : half.ranks) {
          EXPECT_EQ(half.bytes, halves[static_cast<size_t>(rank)]) << rank;
          EXPECT_FALSE(seen[static_cast<size_t>(rank)]);
          seen[static_cast<size_t>(rank)] = true;
        }
      }
      EXPECT_EQ(seen, std::vector<bool>(static_cast<size_t>(size), true));
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(GatherHalvesTest, TooMuchIsRefusedOnAllRanks) {
  WithPeers(3, [](RankPeers* own) {
    const std::string half(own->rank() == 1 ? 700 : 200, 'x');
    const auto refused = GatherHalves(&own->peers, absl::OkStatus(), half, 899);
    EXPECT_THAT(refused.status(), Fails(absl::StatusCode::kResourceExhausted,
                                        "more than 899 bytes: rank 1 alone has 700"));
    // The ranks are in step, and what just fits is taken.
    EXPECT_TRUE(GatherHalves(&own->peers, absl::OkStatus(), half, 900).ok());
  });
}

// A rank that says it has more than there can be.
TEST(GatherHalvesTest, WhatTheRanksSayMayNotAddUp) {
  for (const uint64_t bytes : {uint64_t{1001}, uint64_t{1} << 63, ~uint64_t{0}}) {
    WithPeers(3, [bytes](RankPeers* own) {
      if (own->rank() > 0) {
        const std::array<uint64_t, 3> label = {bytes, static_cast<uint64_t>(own->rank())};
        Proposal proposal;
        proposal.call = "Connect";
        proposal.values = {{"the format", kHalfFormat}};
        proposal.payload.assign(reinterpret_cast<const char*>(label.data()), sizeof(label));
        EXPECT_TRUE(own->peers.Agree(std::move(proposal)).ok());
        return;
      }
      const auto refused = GatherHalves(&own->peers, absl::OkStatus(), "half", 1000);
      EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
      EXPECT_THAT(std::string(refused.status().message()),
                  testing::HasSubstr("more than 1000 bytes: rank 1 alone has"));
    });
  }
}

}  // namespace
}  // namespace sluice
