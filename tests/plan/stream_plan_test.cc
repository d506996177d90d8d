// Positions, sharers and bucket names of data streams, against plain enumerations.
#include "plan/shard/stream_plan.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using testing::ElementsAre;

StreamPlanOptions Options(int64_t items, int64_t epochs, std::vector<PlaceSet> places) {
  StreamPlanOptions options;
  options.items = items;
  options.epochs = epochs;
  options.places = std::move(places);
  return options;
}

std::vector<int64_t> Positions(const StreamPlan& plan) {
  std::vector<int64_t> positions;
  for (int64_t at = plan.NextPosition(0); at < plan.end(); at = plan.NextPosition(at + 1)) {
    positions.push_back(at);
  }
  return positions;
}

TEST(StreamPlanTest, PositionsAreThoseOfTheSelectionInEachEpoch) {
  const StreamPlan plan(Options(10, 2, {{1, 4, 10}}), 0);
  EXPECT_THAT(Positions(plan), ElementsAre(1, 5, 9, 11, 15, 19));
  EXPECT_EQ(plan.CountToCome(), 6);
}

// How many positions each rank makes, of those that it shares.
std::vector<int64_t> Made(const StreamPlanOptions& options) {
  std::vector<int64_t> made(options.places.size());
  StreamPlan plan(options, 0);
  for (int64_t at = 0; at < plan.end(); ++at) {
    const absl::Span<const int> sharers = plan.Sharers(at);
    if (sharers.empty()) continue;
    const int maker = plan.MakerOf(at, sharers);
    EXPECT_TRUE(std::find(sharers.begin(), sharers.end(), maker) != sharers.end()) << at;
    ++made[static_cast<size_t>(maker)];
  }
  return made;
}

TEST(StreamPlanTest, WhoSharesItemsMakesEqualSharesOfThem) {
  EXPECT_THAT(Made(Options(12, 1, {{0, 1, 12}, {0, 1, 12}, {0, 1, 12}})), ElementsAre(4, 4, 4));
  // What does not come out even goes to others in the next epoch.
  EXPECT_THAT(Made(Options(13, 3, {{0, 1, 13}, {0, 1, 13}, {0, 1, 13}})), ElementsAre(13, 13, 13));
  // Two pairs, each with every other item.
  EXPECT_THAT(Made(Options(40, 1, {{0, 2, 40}, {0, 2, 40}, {1, 2, 40}, {1, 2, 40}})),
              ElementsAre(10, 10, 10, 10));
  EXPECT_THAT(Made(Options(40, 1, {{0, 2, 40}, {1, 2, 40}})), ElementsAre(20, 20));
  // The second shares half of what the first has: a half of this half, by a hash.
  const std::vector<int64_t> made = Made(Options(4000, 1, {{0, 1, 4000}, {0, 2, 4000}}));
  EXPECT_NEAR(static_cast<double>(made[1]), 1000, 100);
  EXPECT_EQ(made[0] + made[1], 4000);
}

TEST(StreamPlanTest, RandomSelectionsMatchEnumeration) {
  std::mt19937_64 random(1);
  const auto below = [&random](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (int run = 0; run < 600; ++run) {
    const int64_t items = 1 + below(20);
    const int64_t epochs = 1 + below(4);
    std::vector<PlaceSet> places;
    for (int64_t ranks = 1 + below(5); ranks > 0; --ranks) {
      places.push_back({below(items + 2), 1 + below(5), below(items + 1)});
    }
    const StreamPlanOptions options = Options(items, epochs, places);
    for (int rank = 0; rank < static_cast<int>(places.size()); ++rank) {
      StreamPlan plan(options, rank);
      std::vector<int64_t> expected;
      for (int64_t at = 0; at < items * epochs; ++at) {
        if (places[static_cast<size_t>(rank)].Has(at % items)) expected.push_back(at);
      }
      ASSERT_EQ(Positions(plan), expected) << run;
      ASSERT_EQ(plan.CountToCome(), static_cast<int64_t>(expected.size())) << run;
      for (const int64_t at : expected) {
        std::vector<int> sharers;
        for (int other = 0; other < static_cast<int>(places.size()); ++other) {
          if (places[static_cast<size_t>(other)].Has(at % items)) sharers.push_back(other);
        }
        ASSERT_THAT(plan.Sharers(at), testing::ElementsAreArray(sharers));
      }
    }
  }
}

TEST(StreamPlanTest, WithoutExchangeEachRankReadsForItself) {
  StreamPlanOptions options = Options(4, 1, {{0, 1, 4}, {0, 1, 4}});
  options.exchange = false;
  StreamPlan plan(options, 1);
  EXPECT_THAT(plan.Sharers(2), ElementsAre(1));
}

TEST(StreamPlanTest, BucketIdsAscendWithPositionAndPiece) {
  const StreamPlan plan(Options(int64_t{1} << 30, 3, {{0, 1, int64_t{1} << 30}}), 0);
  const std::vector<int64_t> positions = {0, 1, 1 << 24, (1 << 24) + 1, (1 << 30) - 1, 1 << 30};
  BucketId last;
  for (const int64_t position : positions) {
    for (const int64_t piece : {int64_t{0}, int64_t{1}, StreamPlan::kPiecesMax - 1}) {
      const BucketId id = plan.IdOf(position, piece, 5);
      if (position > 0 || piece > 0) {
        EXPECT_GT(id, last);
      }
      last = id;
    }
  }
}

}  // namespace
}  // namespace sluice
