// Edges of cutting routes into buckets. Random plans show that buckets are filled and exact.
#include "plan/coalesce.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr int64_t kBucketBytes = int64_t{4} << 20;
constexpr int64_t kAloneBytes = kBucketBytes / 8;

Route RouteOf(const Party& party, int64_t elements) {
  Route route;
  route.party = &party;
  route.end = elements;
  return route;
}

PartyBuckets Cut(const std::vector<Route>& routes, int64_t bucket_bytes,
                 int64_t element_bytes = 1) {
  PartyBuckets buckets(true);
  buckets.Start(bucket_bytes, false);
  for (size_t t = 0; t < routes.size(); ++t) {
    buckets.Add(static_cast<int32_t>(t), routes[t], element_bytes, element_bytes);
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

TEST(CoalesceTest, AChunkTravelsAloneFromAnEighthOfABucketOn) {
  Party party;
  party.piece_bytes = kBucketBytes;
  const std::vector<Route> below = {RouteOf(party, kAloneBytes - 1),
                                    RouteOf(party, kAloneBytes - 1)};
  EXPECT_THAT(ChunkCounts(Cut(below, kBucketBytes)), testing::ElementsAre(2));
  const std::vector<Route> at = {RouteOf(party, kAloneBytes), RouteOf(party, kAloneBytes)};
  EXPECT_THAT(ChunkCounts(Cut(at, kBucketBytes)), testing::ElementsAre(1, 1));
}

TEST(CoalesceTest, AFullBucketIsFollowedByAnother) {
  Party party;
  party.piece_bytes = 64;
  const std::vector<Route> exact(4, RouteOf(party, 32));
  EXPECT_THAT(ChunkCounts(Cut(exact, 64)), testing::ElementsAre(2, 2));
  // The second one begins at a multiple of 8, and no longer fits.
  const std::vector<Route> odd = {RouteOf(party, 33), RouteOf(party, 31)};
  EXPECT_THAT(ChunkCounts(Cut(odd, 64)), testing::ElementsAre(1, 1));
}

TEST(CoalesceTest, LargeChunksAreSplitEvenlyAtRowsWhereRowsAreShort) {
  Party party;
  party.piece_bytes = kBucketBytes;
  Route route = RouteOf(party, kBucketBytes + 1000);
  route.row_elements = 1000;
  const PartyBuckets rows = Cut({route}, kBucketBytes);
  ASSERT_EQ(rows.drafts().size(), 2U);
  const Chunk& first = rows.chunks()[0];
  EXPECT_EQ((first.end - first.begin) % 1000, 0);
  EXPECT_LT(first.end - first.begin - (kBucketBytes + 1000) / 2, 1000);
  route.row_elements = kBucketBytes;  // too long to cut at
  const PartyBuckets even = Cut({route}, kBucketBytes);
  ASSERT_EQ(even.drafts().size(), 2U);
  EXPECT_EQ(even.drafts()[0].bytes % 16, 0);
  EXPECT_LE(even.drafts()[0].bytes - even.drafts()[1].bytes, 32);
}

TEST(CoalesceTest, APartysPiecesMayBeSmallerThanItsBuckets) {
  Party party;
  party.piece_bytes = kBucketBytes / 4;
  const std::vector<Route> all = {RouteOf(party, kBucketBytes / 4)};
  const PartyBuckets buckets = Cut(all, kBucketBytes, 4);
  EXPECT_THAT(ChunkCounts(buckets), testing::ElementsAre(1, 1, 1, 1));
  for (const PartyBuckets::Draft& draft : buckets.drafts()) {
    EXPECT_EQ(draft.bytes, kBucketBytes / 4);
  }
}

TEST(CoalesceTest, MoreBucketsThanAnIdCanNumberAreCountedAndNotMade) {
  Party party;
  party.piece_bytes = 1;
  const Route route = RouteOf(party, PartyBuckets::kBucketsMax + 1);
  PartyBuckets buckets(true);
  buckets.Start(1, false);
  buckets.Add(0, route, 1, 1);
  EXPECT_EQ(buckets.wanted(), PartyBuckets::kBucketsMax + 1);
  EXPECT_LT(static_cast<int64_t>(buckets.drafts().size()), PartyBuckets::kBucketsMax);
}

TEST(CoalesceTest, APartyBeginsWithNothingOfTheOneBefore) {
  Party party;
  party.piece_bytes = 64;
  const std::vector<Route> all = {RouteOf(party, 10)};
  PartyBuckets buckets(true);
  buckets.Start(64, false);
  buckets.Add(0, all[0], 1, 1);  // still to be joined
  buckets.Start(64, true);
  EXPECT_EQ(buckets.wanted(), 0);
  buckets.Add(0, all[0], 1, 1);
  buckets.Finish();
  buckets.Finish();  // there is nothing left
  EXPECT_EQ(buckets.wanted(), 1);
}

}  // namespace
}  // namespace sluice
