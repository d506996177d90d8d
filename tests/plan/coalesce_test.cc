// Cutting routes into buckets: what is joined, what is split, and where in a bucket each chunk is.
#include "plan/coalesce.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"

namespace sluice {
namespace {

constexpr int64_t kBucketBytes = int64_t{4} << 20;
constexpr int64_t kAloneBytes = kBucketBytes / 8;

// What was given to PartyBuckets, by tensor.
struct Given {
  Route route;
  int64_t wire_bytes = 1;
  int64_t src_bytes = 1;
};

Given GivenOf(const Party& party, int64_t elements, int64_t wire_bytes, int64_t src_bytes) {
  Given given;
  given.route.party = &party;
  given.route.region = 3;
  given.route.dst_region = 5;
  given.route.begin = 100;
  given.route.end = 100 + elements;
  given.wire_bytes = wire_bytes;
  given.src_bytes = src_bytes;
  return given;
}

PartyBuckets Cut(const std::vector<Given>& all, int64_t bucket_bytes, bool reduced,
                 bool coalesce = true) {
  PartyBuckets buckets(coalesce);
  buckets.Start(bucket_bytes, reduced);
  for (size_t t = 0; t < all.size(); ++t) {
    buckets.Add(static_cast<int32_t>(t), all[t].route, all[t].wire_bytes, all[t].src_bytes);
  }
  buckets.Finish();
  return buckets;
}

std::vector<int64_t> ChunkCounts(const PartyBuckets& buckets) {
  std::vector<int64_t> counts;
  for (const PartyBuckets::Draft& draft : buckets.drafts()) {
    counts.push_back(static_cast<int64_t>(draft.chunk_count));
  }
  return counts;
}

// Every element once and in order, at multiples of 8 bytes, with less than 8 bytes between chunks.
void ExpectWellCut(const PartyBuckets& buckets, const std::vector<Given>& all, int64_t bucket_bytes,
                   bool reduced) {
  std::vector<int64_t> next;
  for (const Given& given : all) next.push_back(given.route.begin);
  size_t chunk_count = 0;
  for (const PartyBuckets::Draft& draft : buckets.drafts()) {
    EXPECT_EQ(draft.first_chunk, chunk_count);
    ASSERT_GT(draft.chunk_count, 0U);
    chunk_count += draft.chunk_count;
    int64_t bytes = 0;
    int64_t contribution_bytes = 0;
    for (size_t c = draft.first_chunk; c < chunk_count; ++c) {
      const Chunk& chunk = buckets.chunks().at(c);
      const auto tensor = static_cast<size_t>(chunk.tensor);
      EXPECT_EQ(chunk.begin, next.at(tensor));
      EXPECT_GT(chunk.end, chunk.begin);
      EXPECT_EQ(chunk.region, all[tensor].route.region);
      EXPECT_EQ(chunk.dst_region, all[tensor].route.dst_region);
      next[tensor] = chunk.end;
      const int64_t elements = chunk.end - chunk.begin;
      EXPECT_EQ(chunk.bucket_offset, (bytes + 7) / 8 * 8);
      bytes = chunk.bucket_offset + elements * all[tensor].wire_bytes;
      EXPECT_EQ(chunk.contribution_offset, reduced ? (contribution_bytes + 7) / 8 * 8 : 0);
      if (reduced)
        contribution_bytes = chunk.contribution_offset + elements * all[tensor].src_bytes;
    }
    EXPECT_EQ(draft.bytes, bytes);
    EXPECT_EQ(draft.contribution_bytes, contribution_bytes);
    EXPECT_LE(reduced ? contribution_bytes : bytes, bucket_bytes);
  }
  EXPECT_EQ(chunk_count, buckets.chunks().size());
  EXPECT_EQ(buckets.wanted(), static_cast<int64_t>(buckets.drafts().size()));
  for (size_t t = 0; t < all.size(); ++t) EXPECT_EQ(next[t], all[t].route.end) << "tensor " << t;
}

TEST(CoalesceTest, EveryElementIsInOneBucketThatFits) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    oracle::Dice dice(seed);
    const bool reduced = dice.Chance(50);
    const int64_t bucket_bytes = dice.Pick<int64_t>({64, 1000, 300 << 10, 1 << 20, 4 << 20});
    Party party;
    party.piece_bytes = dice.Chance(50) ? bucket_bytes : std::max<int64_t>(16, bucket_bytes / 3);
    std::vector<Given> all;
    for (int64_t t = dice.Between(1, 20); t > 0; --t) {
      const int64_t src_bytes = dice.Pick<int64_t>({1, 2, 4, 8});
      const int64_t wire_bytes = std::min(src_bytes, dice.Pick<int64_t>({1, 2, 4, 8}));
      const int64_t most = std::max<int64_t>(1, bucket_bytes / dice.Pick<int64_t>({1, 10, 100}));
      all.push_back(GivenOf(party, dice.Between(1, 3 * most), wire_bytes, src_bytes));
      all.back().route.row_elements = dice.Between(1, 40);
    }
    const PartyBuckets joined = Cut(all, bucket_bytes, reduced);
    ExpectWellCut(joined, all, bucket_bytes, reduced);
    const PartyBuckets apart = Cut(all, bucket_bytes, reduced, false);
    ExpectWellCut(apart, all, bucket_bytes, reduced);
    EXPECT_THAT(ChunkCounts(apart), testing::Each(1));
    EXPECT_EQ(apart.chunks().size(), joined.chunks().size());
  }
}

TEST(CoalesceTest, SmallChunksJoinAcrossLargeOnes) {
  Party party;
  party.piece_bytes = kBucketBytes;
  std::vector<Given> all;
  for (int t = 0; t < 6; ++t) {
    all.push_back(GivenOf(party, t % 2 == 0 ? 10 : kAloneBytes, 1, 1));
  }
  const PartyBuckets buckets = Cut(all, kBucketBytes, false);
  EXPECT_THAT(ChunkCounts(buckets), testing::ElementsAre(1, 1, 1, 3));
  ExpectWellCut(buckets, all, kBucketBytes, false);
}

TEST(CoalesceTest, WithoutJoiningASmallChunkIsABucketAsItIs) {
  Party party;
  party.piece_bytes = 16;  // smaller than the chunks, which would have joined whole
  const std::vector<Given> all(5, GivenOf(party, 40, 2, 4));
  for (const bool reduced : {false, true}) {
    const PartyBuckets buckets = Cut(all, kBucketBytes, reduced, false);
    EXPECT_THAT(ChunkCounts(buckets), testing::ElementsAre(1, 1, 1, 1, 1));
    for (const PartyBuckets::Draft& draft : buckets.drafts()) {
      EXPECT_EQ(draft.bytes, 80);
      EXPECT_EQ(draft.contribution_bytes, reduced ? 160 : 0);
    }
    ExpectWellCut(buckets, all, kBucketBytes, reduced);
  }
}

TEST(CoalesceTest, AChunkTravelsAloneFromAnEighthOfABucketOn) {
  Party party;
  party.piece_bytes = kBucketBytes;
  const std::vector<Given> below = {GivenOf(party, kAloneBytes - 1, 1, 1),
                                    GivenOf(party, kAloneBytes - 1, 1, 1)};
  EXPECT_THAT(ChunkCounts(Cut(below, kBucketBytes, false)), testing::ElementsAre(2));
  const std::vector<Given> at = {GivenOf(party, kAloneBytes, 1, 1),
                                 GivenOf(party, kAloneBytes, 1, 1)};
  EXPECT_THAT(ChunkCounts(Cut(at, kBucketBytes, false)), testing::ElementsAre(1, 1));
}

TEST(CoalesceTest, AFullBucketIsFollowedByAnother) {
  Party party;
  party.piece_bytes = 64;
  const std::vector<Given> exact(4, GivenOf(party, 32, 1, 1));
  EXPECT_THAT(ChunkCounts(Cut(exact, 64, false)), testing::ElementsAre(2, 2));
  // The second one begins at a multiple of 8, and no longer fits.
  const std::vector<Given> odd = {GivenOf(party, 33, 1, 1), GivenOf(party, 31, 1, 1)};
  EXPECT_THAT(ChunkCounts(Cut(odd, 64, false)), testing::ElementsAre(1, 1));
}

TEST(CoalesceTest, LargeChunksAreSplitEvenlyAtRowsWhereRowsAreShort) {
  Party party;
  party.piece_bytes = kBucketBytes;
  Given given = GivenOf(party, kBucketBytes + 1000, 1, 1);
  given.route.row_elements = 1000;
  const PartyBuckets rows = Cut({given}, kBucketBytes, false);
  ASSERT_EQ(rows.drafts().size(), 2U);
  const Chunk& first = rows.chunks()[0];
  EXPECT_EQ((first.end - first.begin) % 1000, 0);
  EXPECT_LT(first.end - first.begin - (kBucketBytes + 1000) / 2, 1000);
  given.route.row_elements = kBucketBytes;  // too long to cut at
  const PartyBuckets even = Cut({given}, kBucketBytes, false);
  ASSERT_EQ(even.drafts().size(), 2U);
  EXPECT_EQ(even.drafts()[0].bytes % 16, 0);
  EXPECT_LE(even.drafts()[0].bytes - even.drafts()[1].bytes, 32);
}

TEST(CoalesceTest, APartysPiecesMayBeSmallerThanItsBuckets) {
  Party party;
  party.piece_bytes = kBucketBytes / 4;
  const std::vector<Given> all = {GivenOf(party, kBucketBytes / 4, 4, 4)};
  const PartyBuckets buckets = Cut(all, kBucketBytes, false);
  EXPECT_THAT(ChunkCounts(buckets), testing::ElementsAre(1, 1, 1, 1));
  for (const PartyBuckets::Draft& draft : buckets.drafts()) {
    EXPECT_EQ(draft.bytes, kBucketBytes / 4);
  }
}

TEST(CoalesceTest, MoreBucketsThanAnIdCanNumberAreCountedAndNotMade) {
  Party party;
  party.piece_bytes = 1;
  const Given given = GivenOf(party, PartyBuckets::kBucketsMax + 1, 1, 1);
  PartyBuckets buckets(true);
  buckets.Start(1, false);
  buckets.Add(0, given.route, 1, 1);
  EXPECT_EQ(buckets.wanted(), PartyBuckets::kBucketsMax + 1);
  EXPECT_LT(static_cast<int64_t>(buckets.drafts().size()), PartyBuckets::kBucketsMax);
}

TEST(CoalesceTest, APartyBeginsWithNothingOfTheOneBefore) {
  Party party;
  party.piece_bytes = 64;
  const std::vector<Given> all = {GivenOf(party, 10, 1, 1)};
  PartyBuckets buckets(true);
  buckets.Start(64, false);
  buckets.Add(0, all[0].route, 1, 1);  // still to be joined
  buckets.Start(64, true);
  EXPECT_EQ(buckets.wanted(), 0);
  buckets.Add(0, all[0].route, 1, 1);
  buckets.Finish();
  ExpectWellCut(buckets, all, 64, true);
  buckets.Finish();  // there is nothing left
  EXPECT_EQ(buckets.wanted(), 1);
}

}  // namespace
}  // namespace sluice
