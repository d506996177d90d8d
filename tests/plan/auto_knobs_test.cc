// Automatic knobs: their bounds, what they follow, and that plans with them are those that the
// chosen knobs give.
#include "plan/auto_knobs.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "plan/checks.h"
#include "plan/job.h"
#include "plan/plan.h"

namespace sluice {
namespace {

using oracle::Job;
using oracle::MakeLayout;
using oracle::MakeTensor;
using oracle::RankRange;

constexpr int64_t kKiB = 1 << 10;
constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kSlot = 8 * kMiB;
constexpr int64_t kCache = 16 * kMiB;

TransferLoad Staged(int64_t bytes) { return {bytes, bytes}; }

// From `sources` ranks to as many others.
TransferSpec Between(int ranks, std::vector<int64_t> shape, const char* from, const char* to,
                     DType dtype = DType::kF32) {
  TransferSpec spec;
  spec.tensors.push_back(MakeTensor("t", std::move(shape), dtype,
                                    MakeLayout({ranks}, RankRange(0, ranks), from),
                                    MakeLayout({ranks}, RankRange(ranks, ranks), to)));
  return spec;
}

TEST(ChooseKnobsTest, WhatLiesReadyTravelsInLargeBuckets) {
  EXPECT_EQ(ChooseKnobs({kMiB, 0}, kSlot, kCache).bucket_bytes, 4 * kMiB);
  EXPECT_EQ(ChooseKnobs({int64_t{1} << 50, 0}, kSlot, kCache).bucket_bytes, 4 * kMiB);
  EXPECT_EQ(ChooseKnobs({kMiB, 0}, kSlot, 2 * kMiB).bucket_bytes, kMiB);
  EXPECT_EQ(ChooseKnobs({kMiB, 0}, kSlot, 1 << 30).bucket_bytes, kSlot);
  EXPECT_EQ(ChooseKnobs({100 * kMiB, 49 * kMiB}, kSlot, kCache).bucket_bytes, 4 * kMiB);
  EXPECT_EQ(ChooseKnobs({100 * kMiB, 51 * kMiB}, kSlot, kCache).bucket_bytes, 2 * kMiB);
}

TEST(ChooseKnobsTest, StagedBytesStayInTheCache) {
  EXPECT_EQ(ChooseKnobs(Staged(int64_t{1} << 40), kSlot, kCache).bucket_bytes, kCache / 8);
  EXPECT_EQ(ChooseKnobs(Staged(int64_t{1} << 40), kSlot, 4 * kMiB).bucket_bytes, kMiB / 2);
}

TEST(ChooseKnobsTest, OnDevicesThereIsNoCacheToStayIn) {
  EXPECT_EQ(ChooseKnobs(Staged(int64_t{1} << 40), kSlot, 0).bucket_bytes, kSlot);
  EXPECT_EQ(ChooseKnobs(Staged(1), kSlot, 0).bucket_bytes, kSlot);
}

TEST(ChooseKnobsTest, SmallLoadsStillOverlap) {
  EXPECT_EQ(ChooseKnobs(Staged(8 * kMiB), kSlot, kCache).bucket_bytes, kMiB);
  EXPECT_EQ(ChooseKnobs(Staged(kMiB), kSlot, kCache).bucket_bytes, kAutoBucketBytesMin);
  EXPECT_EQ(ChooseKnobs(Staged(0), kSlot, kCache).bucket_bytes, 4 * kMiB);
}

TEST(AutoMaxInFlightTest, SmallBucketsAreMore) {
  EXPECT_EQ(AutoMaxInFlight(kMiB, kMiB), 2);
  EXPECT_EQ(AutoMaxInFlight(0, kSlot), 2);
  EXPECT_EQ(AutoMaxInFlight(0, 16 * kKiB), AutoMaxInFlight(16 * kKiB, kSlot));
  EXPECT_GT(AutoMaxInFlight(32 * kKiB, 32 * kKiB), 2);
  int before = AutoMaxInFlight(1, 1);
  for (int64_t bytes = 1; bytes <= 8 * kMiB; bytes *= 2) {
    const int now = AutoMaxInFlight(bytes, bytes);
    EXPECT_LE(now, before);
    EXPECT_GE(now, 2);
    before = now;
  }
}

TEST(ChooseKnobsTest, SlotsAreTheLimit) {
  for (const int64_t slot : {int64_t{16}, int64_t{1000}, 64 * kKiB, kMiB, kSlot}) {
    for (const int64_t cache : {int64_t{0}, int64_t{1}, kMiB, kCache, int64_t{1} << 40}) {
      for (int64_t bytes = 0; bytes < int64_t{1} << 60; bytes = bytes * 5 + 1) {
        for (const int64_t staged : {int64_t{0}, bytes / 2, bytes}) {
          const Knobs knobs = ChooseKnobs({bytes, staged}, slot, cache);
          EXPECT_LE(knobs.bucket_bytes, slot);
          EXPECT_GE(knobs.bucket_bytes, std::min(slot, kAutoBucketBytesMin));
          EXPECT_GE(knobs.max_in_flight, 1);
        }
      }
    }
  }
}

TEST(ChooseKnobsTest, NeverFallsWithTheLoadOrTheCache) {
  int64_t before = 0;
  for (int64_t bytes = 1; bytes < int64_t{1} << 60; bytes = bytes * 3 / 2 + 1) {
    const int64_t now = ChooseKnobs(Staged(bytes), kSlot, kCache).bucket_bytes;
    EXPECT_GE(now, before) << bytes;
    before = now;
  }
  before = 0;
  for (int64_t cache = 1; cache < int64_t{1} << 40; cache = cache * 3 / 2 + 1) {
    const int64_t now = ChooseKnobs(Staged(int64_t{1} << 40), kSlot, cache).bucket_bytes;
    EXPECT_GE(now, before) << cache;
    EXPECT_LE(now, ChooseKnobs({kMiB, 0}, kSlot, cache).bucket_bytes);
    before = now;
  }
}

TEST(LoadOfTest, CountsWhatATargetGetsInAWindow) {
  TransferSpec spec = Between(4, {1024, 256}, "S(0)", "S(0)");
  const std::vector<int> nodes(8);
  EXPECT_EQ(LoadOf(spec, nodes).rank_bytes, 256 * kKiB);
  spec.tensors.push_back(spec.tensors[0]);
  EXPECT_EQ(LoadOf(spec, nodes).rank_bytes, 512 * kKiB);
  spec.tensors[1].window = 7;
  EXPECT_EQ(LoadOf(spec, nodes).rank_bytes, 256 * kKiB);
  EXPECT_EQ(LoadOf(Between(4, {1024, 256}, "S(0)", "R"), nodes).rank_bytes, kMiB);
}

// Stages of a pipeline have tensors of their own.
TEST(LoadOfTest, TensorsForDifferentRanksDoNotAddUp) {
  TransferSpec spec = Between(2, {1024, 256}, "S(0)", "S(0)");
  spec.tensors.push_back(MakeTensor("u", {1024, 256}, DType::kF32,
                                    MakeLayout({2}, RankRange(0, 2), "S(0)"),
                                    MakeLayout({2}, RankRange(4, 2), "S(0)")));
  EXPECT_EQ(LoadOf(spec, std::vector<int>(6)).rank_bytes, 512 * kKiB);
}

TEST(LoadOfTest, StretchesAreNotStaged) {
  const std::vector<int> apart = RankRange(0, 8);
  EXPECT_EQ(LoadOf(Between(4, {1024, 256}, "S(0)", "S(0)"), apart).staged_bytes, 0);
  EXPECT_EQ(LoadOf(Between(4, {1024, 256}, "S(0)", "R"), apart).staged_bytes, 0);
  EXPECT_EQ(LoadOf(Between(4, {1, 1024, 256}, "S(1)", "R"), apart).staged_bytes, 0);
}

TEST(LoadOfTest, RowsAreStagedBetweenNodesAndWhereTheyAreShort) {
  const std::vector<int> together(8);
  const std::vector<int> apart = RankRange(0, 8);
  const auto is_staged = [](const TransferSpec& spec, const std::vector<int>& nodes) {
    const TransferLoad load = LoadOf(spec, nodes);
    EXPECT_TRUE(load.staged_bytes == 0 || load.staged_bytes == load.rank_bytes);
    return load.staged_bytes > 0;
  };
  const TransferSpec rows_of_256 = Between(4, {1024, 256}, "S(0)", "S(1)");
  EXPECT_FALSE(is_staged(rows_of_256, together));
  EXPECT_TRUE(is_staged(rows_of_256, apart));
  EXPECT_TRUE(is_staged(Between(4, {1024, 252}, "S(0)", "S(1)"), together));
  EXPECT_FALSE(is_staged(Between(4, {1024, 4, 64}, "S(0)", "S(1)"), together));
  EXPECT_TRUE(is_staged(Between(4, {1024, 256}, "S(0)", "SS(0,4)"), apart));
}

TEST(LoadOfTest, ReductionsAndCastsAreStaged) {
  const std::vector<int> nodes(8);
  const TransferSpec reduced = Between(4, {1024, 256}, "P(sum)", "S(0)");
  EXPECT_EQ(LoadOf(reduced, nodes).staged_bytes, LoadOf(reduced, nodes).rank_bytes);
  TransferSpec cast = Between(4, {1024, 256}, "S(0)", "S(0)");
  cast.tensors[0].dst_dtype = DType::kBF16;
  EXPECT_EQ(LoadOf(cast, nodes).rank_bytes, 128 * kKiB);
  EXPECT_EQ(LoadOf(cast, nodes).staged_bytes, 128 * kKiB);
}

TEST(LoadOfTest, NothingIsNothing) {
  EXPECT_EQ(LoadOf({}, {}).rank_bytes, 0);
  const TransferLoad load = LoadOf(Between(4, {0, 256}, "S(0)", "S(1)"), std::vector<int>(8));
  EXPECT_EQ(load.rank_bytes, 0);
  EXPECT_EQ(load.staged_bytes, 0);
}

TEST(LoadOfTest, HugeTensorsDoNotOverflow) {
  TransferSpec spec = Between(4, {int64_t{1} << 30, int64_t{1} << 28}, "S(0)", "R");
  for (int i = 0; i < 20; ++i) spec.tensors.push_back(spec.tensors[0]);
  EXPECT_GT(LoadOf(spec, std::vector<int>(8)).rank_bytes, int64_t{1} << 50);
}

TEST(WithKnobsTest, WhatIsGivenStays) {
  const Job job = oracle::RandomJob(1);
  PlanOptions options = job.options();
  options.bucket_bytes = 12345;
  options.max_in_flight = 0;
  EXPECT_EQ(WithKnobs(job.spec, options).bucket_bytes, 12345);
  EXPECT_GE(WithKnobs(job.spec, options).max_in_flight, 1);
  options.bucket_bytes = 0;
  options.max_in_flight = 7;
  EXPECT_EQ(WithKnobs(job.spec, options).max_in_flight, 7);
  EXPECT_GE(WithKnobs(job.spec, options).bucket_bytes, kAutoBucketBytesMin);
}

// All ranks plan with the same knobs, and say which.
TEST(WithKnobsTest, PlansAreThoseOfTheKnobsChosen) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Job job = seed % 4 == 0 ? oracle::RandomLargeJob(seed) : oracle::RandomJob(seed);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(job)));
    PlanOptions automatic = job.options();
    automatic.bucket_bytes = 0;
    automatic.max_in_flight = 0;
    const PlanOptions chosen = WithKnobs(job.spec, automatic);
    for (int rank = 0; rank < job.ranks(); ++rank) {
      const auto plan = MakePlan(job.spec, automatic, rank);
      const auto same = MakePlan(job.spec, chosen, rank);
      ASSERT_TRUE(plan.ok() && same.ok()) << plan.status() << same.status();
      EXPECT_EQ(plan->bucket_bytes, chosen.bucket_bytes);
      EXPECT_EQ(plan->max_in_flight, chosen.max_in_flight);
      const absl::Status equal = oracle::CheckSame(*plan, *same);
      ASSERT_TRUE(equal.ok()) << "rank " << rank << ": " << equal;
    }
  }
}

}  // namespace
}  // namespace sluice
