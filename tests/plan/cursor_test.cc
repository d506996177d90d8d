// Cursors: texts, merging, and jobs that stop and go on, against plain sets of positions.
#include "plan/shard/cursor.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

Cursor Of(int64_t items, std::vector<ReleasedLayer> layers) {
  Cursor cursor;
  cursor.items = items;
  cursor.layers = std::move(layers);
  return cursor;
}

TEST(PlaceSetTest, WhatTwoSetsShareIsWhatBothHave) {
  oracle::Dice dice(3);
  for (int run = 0; run < 3000; ++run) {
    const PlaceSet a = {dice.Between(0, 19), dice.Between(1, 12), dice.Between(0, 59)};
    const PlaceSet b = {dice.Between(0, 19), dice.Between(1, 12), dice.Between(0, 59)};
    const PlaceSet both = a.And(b);
    for (int64_t place = 0; place < 70; ++place) {
      ASSERT_EQ(both.Has(place), a.Has(place) && b.Has(place)) << run << " at " << place;
    }
  }
  const int64_t most = int64_t{1} << 40;
  EXPECT_EQ((PlaceSet{1, INT64_MAX, most}).And({0, 1, most}), (PlaceSet{1, 1, 2}));
  EXPECT_EQ((PlaceSet{1, INT64_MAX, most}).count(), 1);
}

TEST(CursorTest, BlocksAreInTheTextWhereThereAreSome) {
  Cursor cursor;
  cursor.items = 100;
  cursor.shuffle = true;
  EXPECT_THAT(cursor.ToText(), testing::Not(HasSubstr("block")));
  EXPECT_EQ(Cursor::Parse(cursor.ToText())->block_items, 1);
  cursor.block_items = 64;
  EXPECT_THAT(cursor.ToText(), HasSubstr(" data 0 block 64"));
  const Cursor parsed = Cursor::Parse(cursor.ToText()).value();
  EXPECT_EQ(parsed.block_items, 64);
  for (const char* block : {"0", "-1", "x", ""}) {
    EXPECT_FALSE(
        Cursor::Parse(absl::StrCat("sluice-cursor-2 items 4 shuffle 1 seed 0 data 0 block ", block))
            .ok());
  }
}

TEST(CursorTest, TextsRoundTrip) {
  Cursor cursor = Of(
      100,
      {{{{0, 4, 100}, 7, {{9, 12}, {40, 41}}}, {{1, 4, 100}, 3, {}}}, {}, {{{0, 1, 50}, 1, {}}}});
  cursor.shuffle = true;
  cursor.seed = UINT64_MAX;
  cursor.data = UINT64_MAX - 1;
  const Cursor parsed = Cursor::Parse(cursor.ToText()).value();
  EXPECT_EQ(parsed.ToText(), cursor.ToText());
  EXPECT_EQ(parsed.layers, cursor.layers);
  EXPECT_EQ(parsed.data, cursor.data);
}

TEST(CursorTest, RanksAsFarAsEachOtherCostOnePart) {
  std::vector<Cursor> cursors;
  for (int64_t rank = 0; rank < 1000; ++rank) {
    cursors.push_back(Of(1 << 30, {{{{rank, 1000, 1 << 30}, 12345 + rank / 500, {}}}}));
  }
  const Cursor merged = MergeCursors(cursors).value();
  EXPECT_LT(merged.ToText().size(), 200u);
  const Cursor parsed = Cursor::Parse(merged.ToText()).value();
  EXPECT_EQ(parsed.layers, merged.layers);
}

TEST(CursorTest, TextsOfManyRangesHaveALimit) {
  Cursor cursor = Of(int64_t{1} << 39, {{{{0, 1, int64_t{1} << 39}, int64_t{1} << 60, {}}}});
  for (int64_t i = 1; i < 100'000; ++i) {
    const int64_t at = (int64_t{1} << 60) + 2000 * i;
    cursor.layers[0][0].done.push_back({at, at + 1000});
  }
  const std::string text = cursor.ToText();
  EXPECT_LE(text.size(), Cursor::kBytesMax);
  const Cursor parsed = Cursor::Parse(text).value();
  EXPECT_GT(parsed.layers[0][0].done.size(), 100u);
}

TEST(CursorTest, RefusesWhatIsNone) {
  for (const char* text :
       {"",
        "sluice-cursor-3 items 1",
        "sluice-cursor-2 items 10 shuffle 0 seed 1",
        "sluice-cursor-2 items 0 shuffle 0 seed 1 data 0",
        "sluice-cursor-2 items 10 shuffle 0 seed 1 data 0 1 0 1 10 0",
        "sluice-cursor-2 items 10 shuffle 0 seed 1 data 0 / 1 0 1 10",
        "sluice-cursor-2 items 10 shuffle 0 seed 1 data 0 / 1 0 0 10 0",
        "sluice-cursor-2 items 10 shuffle 0 seed 1 data 0 / 1 0 1 11 0",
        "sluice-cursor-2 items 10 shuffle 0 seed 1 data 0 / 1 0 1 0 0",
        "sluice-cursor-2 items 10 shuffle 0 seed 1 data 0 / 1 0 1 10 -1",
        "sluice-cursor-2 items 10 shuffle 0 seed 1 data 0 / 1 0 1 10 4 1",
        "sluice-cursor-2 items 10 shuffle 0 seed 1 data 0 / 1 0 1 10 4 0 1",
        "sluice-cursor-2 items 10 shuffle 0 seed 1 data 0 / 1 0 1 10 4 1 x",
        "sluice-cursor-2 items 10 shuffle 0 seed 1 data 0 / 0 0 1 10 4",
        "sluice-cursor-2 items 10 shuffle 0 seed 1 data 0 / 2 9 1 10 4",
        "sluice-cursor-2 items 10 shuffle 0 seed 1 data 0 / 1 0 1 10 9223372036854775807",
        "sluice-cursor-2 items 10 shuffle 0 seed 1 data 0 / 1 0 1 10 4 9223372036854775807 1",
        "sluice-cursor-2 items 10 shuffle 0 seed 1 data 0 / 1 0 1 10 4 1 9223372036854775807",
        "sluice-cursor-2 items 500000000000 shuffle 0 seed 1 data 0 / 400000000000 0 1 10 4",
        "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 1 10",
        "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 0 10 position 0 done",
        "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 1 11 position 0 done",
        "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 1 10 position -1 done",
        "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 1 10 position 9223372036854775807 done",
        "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 1 10 position 4 done 3 5",
        "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 1 10 position 4 done 5",
        "sluice-cursor-1 items 10 shuffle 0 seed 1 places 0 1 10 position 4 done 5 x"}) {
    EXPECT_THAT(Cursor::Parse(text).status().message(), HasSubstr("not a stream's cursor")) << text;
  }
}

TEST(CursorTest, TakesTextsOfTheVersionBefore) {
  const Cursor cursor =
      Cursor::Parse(
          "sluice-cursor-1 items 10 shuffle 1 seed 7 places 1 4 10 position 6 done 9 10 11 14")
          .value();
  EXPECT_TRUE(cursor.shuffle);
  EXPECT_EQ(cursor.seed, 7u);
  EXPECT_EQ(cursor.data, 0u);
  // Positions 1, 5, 9, 11, 15, 19: released are 1, 5, and then 9 and 11.
  ASSERT_THAT(cursor.layers, SizeIs(1));
  EXPECT_THAT(cursor.layers[0], ElementsAre(ReleasedPart{{1, 4, 10}, 4, {}}));
}

TEST(CursorTest, MergingRefusesOtherStreams) {
  Cursor one;
  Cursor two;
  two.seed = 1;
  EXPECT_THAT(MergeCursors({one, two}).status().message(), HasSubstr("different streams"));
  two = one;
  two.block_items = 64;
  EXPECT_THAT(MergeCursors({one, two}).status().message(), HasSubstr("different streams"));
  two = one;
  one.data = 1;
  EXPECT_TRUE(MergeCursors({one, two}).ok());
  two.data = 2;
  EXPECT_THAT(MergeCursors({one, two}).status().message(), HasSubstr("different data sets"));
}

// What is far behind, or counts nothing, costs no walk and keeps no item back.
TEST(CursorTest, LongStretchesAreSkippedAtOnce) {
  const int64_t items = int64_t{1} << 38;
  const int64_t far = items / 2 - 7;
  const Cursor merged = MergeCursors({Of(items, {{{{0, 2, items}, far, {{far + 1, far + 1000}}}}}),
                                      Of(items, {{{{1, 2, items}, 5, {{6, far}}}}}),
                                      Of(items, {{{{0, 1, 0}, 0, {}}}})})
                            .value();
  StreamPlanOptions options;
  options.items = items;
  options.places = {{0, 1, items}, {0, 3, items}};
  options.released = merged.layers;
  const StreamPlan all(options, 0);
  EXPECT_EQ(all.CountToCome(), 1 + 1 + 7);
  EXPECT_EQ(all.NextPosition(0), 11);
  EXPECT_EQ(all.NextPosition(12), 2 * far);
  EXPECT_EQ(all.NextPosition(2 * far + 1), 2 * far + 1);
  const StreamPlan third(options, 1);
  EXPECT_EQ(third.NextPosition(0) % 3, 0);
  EXPECT_GE(third.NextPosition(0), 2 * far);
}

// Jobs one after the other, of any ranks with any selections. Each stops anywhere, and goes on from
// the merged cursor or from its ranks' own ones. What all ranks that share an item have released
// does not come again. All else does.
TEST(CursorTest, JobsGoOnWithExactlyWhatWasNotReleased) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    oracle::Dice dice(seed);
    const int64_t items = dice.Between(1, 60);
    const int64_t epochs = dice.Between(1, 3);
    std::set<int64_t> released;
    std::vector<ReleasedLayer> before;
    for (int job = 0; job < 5; ++job) {
      StreamPlanOptions options;
      options.items = items;
      options.epochs = epochs;
      options.released = before;
      const int64_t ranks = dice.Between(1, 5);
      const int64_t kind = dice.Between(0, 2);  // they deal, share, or overlap
      for (int64_t r = 0; r < ranks; ++r) {
        options.places.push_back(
            kind == 0 ? PlaceSet{r, ranks, items}
            : kind == 1
                ? PlaceSet{0, 1, items}
                : PlaceSet{dice.Between(0, items + 1), dice.Between(1, 4), dice.Between(0, items)});
      }
      std::vector<Cursor> cursors;
      std::vector<std::set<int64_t>> of_rank;
      for (int rank = 0; rank < static_cast<int>(ranks); ++rank) {
        const StreamPlan plan(options, rank);
        std::vector<int64_t> order;
        for (int64_t at = plan.NextPosition(0); at < plan.end(); at = plan.NextPosition(at + 1)) {
          ASSERT_EQ(released.count(at), 0u) << seed << ": " << at << " comes again";
          order.push_back(at);
        }
        ASSERT_EQ(plan.CountToCome(), static_cast<int64_t>(order.size()));
        for (int64_t at = 0; at < plan.end(); ++at) {
          if (!plan.places().Has(at % items) || released.count(at) > 0) continue;
          ASSERT_TRUE(std::binary_search(order.begin(), order.end(), at)) << seed << ": " << at;
        }
        // Nearly in order, as a window lets it be: several gaps at once.
        for (size_t i = 0; i < order.size(); ++i) {
          const size_t other =
              std::min(i + static_cast<size_t>(dice.Between(0, 4)), order.size() - 1);
          if (dice.Between(0, 1) == 0) std::swap(order[i], order[other]);
        }
        order.resize(static_cast<size_t>(dice.Between(0, static_cast<int64_t>(order.size()))));
        Cursor start;
        start.items = items;
        ReleaseLog log(start, &plan);
        for (const int64_t position : order) log.Release(position);
        of_rank.emplace_back(order.begin(), order.end());
        const Cursor parsed = Cursor::Parse(log.cursor().ToText()).value();
        cursors.push_back(parsed);
      }
      for (int64_t at = 0; at < items * epochs; ++at) {
        bool counted = false;
        bool all = true;
        for (size_t rank = 0; rank < of_rank.size(); ++rank) {
          if (!options.places[rank].Has(at % items)) continue;
          counted = true;
          all = all && of_rank[rank].count(at) > 0;
        }
        if (counted && all) released.insert(at);
      }
      absl::StatusOr<Cursor> merged = MergeCursors(cursors);
      ASSERT_TRUE(merged.ok()) << merged.status();
      if (dice.Between(0, 1) == 0) merged = Cursor::Parse(merged->ToText());
      ASSERT_TRUE(merged.ok()) << merged.status();
      if (dice.Between(0, 1) == 0) merged = MergeCursors({*merged, *merged});
      ASSERT_TRUE(merged.ok()) << merged.status();
      before = merged->layers;
    }
  }
}

}  // namespace
}  // namespace sluice
