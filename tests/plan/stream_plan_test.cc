// Orders, positions, sharers and cursors of data streams, against plain enumerations.
#include "plan/stream_plan.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/cursor.h"
#include "plan/epoch_order.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(EpochOrderTest, EachEpochIsAPermutationOfItsOwn) {
  for (const int64_t items : {1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097}) {
    const EpochOrder order(items, true, 7);
    std::set<std::vector<int64_t>> epochs;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> seen;
      for (int64_t place = 0; place < items; ++place) seen.push_back(order.ItemAt(epoch, place));
      epochs.insert(seen);
      std::sort(seen.begin(), seen.end());
      for (int64_t i = 0; i < items; ++i) ASSERT_EQ(seen[static_cast<size_t>(i)], i);
    }
    if (items >= 16) {
      EXPECT_EQ(epochs.size(), 3u) << items;
    }
  }
}

TEST(EpochOrderTest, SeedsDiffer) {
  const EpochOrder one(1000, true, 1);
  const EpochOrder two(1000, true, 2);
  int same = 0;
  for (int64_t place = 0; place < 1000; ++place)
    same += one.ItemAt(0, place) == two.ItemAt(0, place);
  EXPECT_LT(same, 20);
}

TEST(EpochOrderTest, ShufflesEvenly) {
  // How far an item lies from its number: a third of the items, on average, in a random order.
  const int64_t items = 3000;
  const EpochOrder order(items, true, 3);
  double distance = 0;
  for (int64_t place = 0; place < items; ++place) {
    distance += static_cast<double>(std::abs(order.ItemAt(5, place) - place));
  }
  EXPECT_NEAR(distance / static_cast<double>(items * items), 1.0 / 3, 0.03);
}

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
  EXPECT_EQ(plan.CountFromResume(), 6);
}

TEST(StreamPlanTest, RandomSelectionsMatchEnumeration) {
  std::mt19937_64 random(1);
  const auto below = [&random](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (int run = 0; run < 300; ++run) {
    const int64_t items = 1 + below(20);
    const int64_t epochs = 1 + below(4);
    std::vector<PlaceSet> places;
    for (int64_t ranks = 1 + below(5); ranks > 0; --ranks) {
      places.push_back({below(items + 2), 1 + below(5), below(items + 1)});
    }
    StreamPlanOptions options = Options(items, epochs, places);
    options.resume.position = below(items * epochs + 1);
    for (int64_t at = options.resume.position; below(3) > 0;) {
      at += 1 + below(3);
      options.resume.done.push_back({at, at + 1 + below(3)});
      at = options.resume.done.back().end;
    }
    for (int rank = 0; rank < static_cast<int>(places.size()); ++rank) {
      StreamPlan plan(options, rank);
      std::vector<int64_t> expected;
      for (int64_t at = 0; at < items * epochs; ++at) {
        if (!places[static_cast<size_t>(rank)].Has(at % items)) continue;
        if (!options.resume.IsDone(at)) expected.push_back(at);
      }
      ASSERT_EQ(Positions(plan), expected) << run;
      ASSERT_EQ(plan.CountFromResume(), static_cast<int64_t>(expected.size())) << run;
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

TEST(CursorTest, TextsRoundTrip) {
  Cursor cursor;
  cursor.items = 100;
  cursor.shuffle = true;
  cursor.seed = UINT64_MAX;
  cursor.places = {1, 4, 100};
  cursor.point = {33, {{37, 40}, {50, 51}}};
  const absl::StatusOr<Cursor> parsed = Cursor::Parse(cursor.ToText());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->ToText(), cursor.ToText());
  EXPECT_EQ(parsed->point.done, cursor.point.done);
}

TEST(CursorTest, TextsOfManyRangesStayShort) {
  Cursor cursor;
  cursor.items = int64_t{1} << 39;
  cursor.seed = UINT64_MAX;
  cursor.places = {0, 1, cursor.items};
  cursor.point.position = int64_t{1} << 60;
  for (int64_t i = 1; i < 1000; ++i) {
    cursor.point.done.push_back({(int64_t{1} << 60) + 2 * i, (int64_t{1} << 60) + 2 * i + 1});
  }
  EXPECT_LE(cursor.ToText().size(), Cursor::kBytesMax);
}

TEST(CursorTest, RefusesWhatIsNone) {
  for (const char* text :
       {"", "sluice-cursor-2 items 1", "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 1 10",
        "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 0 10 position 0 done",
        "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 1 11 position 0 done",
        "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 1 10 position -1 done",
        "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 1 10 position 4 done 3 5",
        "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 1 10 position 4 done 5",
        "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 1 10 position 4 done 5 x"}) {
    EXPECT_THAT(Cursor::Parse(text).status().message(), HasSubstr("not a stream's cursor")) << text;
  }
}

TEST(CursorTest, MergingRefusesOtherStreams) {
  Cursor one;
  Cursor two;
  two.seed = 1;
  EXPECT_THAT(MergeCursors({one, two}).status().message(), HasSubstr("different streams"));
}

// Ranks release some of their positions in any order; what a merged cursor leaves to come is
// exactly what some rank that counts it has not released.
TEST(CursorTest, MergedCursorsLeaveWhatIsNotReleased) {
  std::mt19937_64 random(5);
  const auto below = [&random](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (int run = 0; run < 300; ++run) {
    const int64_t items = 1 + below(12);
    const int64_t epochs = 1 + below(3);
    const int64_t ranks = 1 + below(4);
    std::vector<PlaceSet> places;
    for (int64_t r = 0; r < ranks; ++r) {
      places.push_back(run % 2 == 0 ? PlaceSet{r, ranks, items} : PlaceSet{0, 1, items});
    }
    const StreamPlanOptions options = Options(items, epochs, places);
    std::vector<Cursor> cursors;
    std::vector<std::set<int64_t>> released(static_cast<size_t>(ranks));
    for (int rank = 0; rank < static_cast<int>(ranks); ++rank) {
      const StreamPlan plan(options, rank);
      Cursor start;
      start.items = items;
      start.places = places[static_cast<size_t>(rank)];
      ReleaseLog log(start, &plan);
      std::vector<int64_t> order = Positions(plan);
      // Nearly in order, as a window lets it be.
      for (size_t i = 0; i + 1 < order.size(); ++i) {
        if (below(2) == 0) std::swap(order[i], order[i + 1]);
      }
      order.resize(static_cast<size_t>(below(static_cast<int64_t>(order.size()) + 1)));
      for (const int64_t position : order) {
        log.Release(position);
        released[static_cast<size_t>(rank)].insert(position);
      }
      const absl::StatusOr<Cursor> parsed = Cursor::Parse(log.cursor().ToText());
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      cursors.push_back(*parsed);
    }
    const absl::StatusOr<Cursor> merged = MergeCursors(cursors);
    ASSERT_TRUE(merged.ok()) << merged.status();
    for (int64_t at = 0; at < items * epochs; ++at) {
      bool counted = false;
      bool all = true;
      for (size_t rank = 0; rank < released.size(); ++rank) {
        if (!places[rank].Has(at % items)) continue;
        counted = true;
        all = all && released[rank].count(at) > 0;
      }
      if (counted) {
        ASSERT_EQ(merged->point.IsDone(at), all) << run << " at " << at;
      }
    }
  }
}

}  // namespace
}  // namespace sluice
