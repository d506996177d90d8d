// Which buckets of a plan take copies, and the peaks of what they hold, of plans made by hand.
#include "plan/staging.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "plan/bucket.h"
#include "plan/job.h"
#include "plan/plan.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"

namespace sluice {
namespace {

using oracle::MakeLayout;
using oracle::MakeTensor;

enum Tensor : int32_t { kSame, kNarrowed, kWidened };

// 256 elements of each tensor; the rank's local tensor is of 4 rows with 64 of its 100 columns in
// region 1, and in region 0 one stretch.
class StagingTest : public ::testing::Test {
 protected:
  StagingTest() {
    const Layout src = MakeLayout({1}, {0}, "R");
    const Layout dst = MakeLayout({1}, {1}, "R");
    spec_.tensors = {MakeTensor("same", {4, 64}, DType::kF32, src, dst),
                     MakeTensor("narrowed", {4, 64}, DType::kF32, src, dst),
                     MakeTensor("widened", {4, 64}, DType::kBF16, src, dst)};
    spec_.tensors[kNarrowed].dst_dtype = DType::kBF16;
    spec_.tensors[kWidened].dst_dtype = DType::kF32;
    plan_.bucket_bytes = 4096;
    for (int region = 0; region < 2; ++region) {
      RegionRuns& runs = plan_.regions.emplace_back();
      runs.dims = 2;
      runs.first_run = {2 * region, 2 * region + 1, 2 * region + 2};
      runs.extent = {4, 64};
      plan_.runs.push_back({0, 0, 4});
      plan_.runs.push_back({0, 0, 64});
    }
    plan_.channels.resize(2);
  }

  // A bucket of `chunks` chunks, all of the tensor's region.
  void Add(Role role, int32_t channel, Tensor tensor, int32_t region, int64_t bytes,
           int32_t chunks = 1) {
    Bucket& bucket = plan_.buckets.emplace_back();
    bucket.role = role;
    bucket.channel = channel;
    bucket.bytes = bytes;
    bucket.first_chunk = static_cast<int64_t>(plan_.chunks.size());
    bucket.chunk_count = chunks;
    for (int32_t i = 0; i < chunks; ++i) {
      plan_.chunks.push_back({.tensor = tensor, .region = region, .end = 256});
    }
    ++plan_.channels[static_cast<size_t>(channel)].buckets;
  }

  void AddStagingOf(int max_in_flight) {
    const std::vector<int64_t> stretch = {4, 64};
    const std::vector<int64_t> wide = {4, 100};
    const std::vector<absl::Span<const int64_t>> local_shapes = {stretch, wide};
    AddStaging(spec_, max_in_flight, local_shapes, &plan_);
  }

  void Expect(size_t bucket, bool packs, bool unpacks, int64_t staging_bytes) const {
    SCOPED_TRACE(bucket);
    EXPECT_EQ(plan_.buckets[bucket].packs, packs);
    EXPECT_EQ(plan_.buckets[bucket].unpacks, unpacks);
    EXPECT_EQ(plan_.buckets[bucket].staging_bytes, staging_bytes);
  }

  TransferSpec spec_;
  Plan plan_;
};

TEST_F(StagingTest, OneStretchOfTheWiresTypeTakesNoCopy) {
  Add(Role::kSource, 0, kSame, 0, 1024);
  Add(Role::kSource, 0, kNarrowed, 0, 512);
  Add(Role::kSource, 0, kWidened, 0, 512);
  Add(Role::kDestination, 1, kSame, 0, 1024);
  Add(Role::kDestination, 1, kNarrowed, 0, 512);
  Add(Role::kDestination, 1, kWidened, 0, 512);
  AddStagingOf(2);
  Expect(0, false, false, 0);
  Expect(1, true, false, 512);  // is cast before it crosses
  Expect(2, false, false, 0);
  Expect(3, false, false, 0);
  Expect(4, false, false, 0);
  Expect(5, false, true, 512);  // is cast after
}

TEST_F(StagingTest, SeveralChunksAreCopiedTogether) {
  Add(Role::kSource, 0, kSame, 0, 2048, 2);
  Add(Role::kDestination, 1, kSame, 0, 2048, 2);
  AddStagingOf(2);
  Expect(0, true, false, 2048);
  Expect(1, false, true, 2048);
}

// 64 elements of 4 bytes are as long as rows have to be, of 2 bytes too short.
TEST_F(StagingTest, LongRowsCrossAsTheyLieWithinANode) {
  plan_.channels[1].one_node = true;
  Add(Role::kSource, 0, kSame, 1, 1024);
  Add(Role::kSource, 1, kSame, 1, 1024);
  Add(Role::kSource, 1, kWidened, 1, 512);
  AddStagingOf(2);
  Expect(0, true, false, 1024);
  Expect(1, false, false, 0);
  Expect(2, true, false, 512);
}

TEST_F(StagingTest, WhatIsLocalOrContributedInItsOwnType) {
  Add(Role::kLocal, 0, kNarrowed, 1, 512);
  // A contribution crosses in the type that it has, whatever becomes of the sum.
  Add(Role::kContributor, 1, kNarrowed, 0, 512);
  plan_.buckets[1].contribution_bytes = 1024;
  Add(Role::kContributor, 1, kNarrowed, 1, 512);
  plan_.buckets[2].contribution_bytes = 1024;
  AddStagingOf(2);
  Expect(0, false, false, 0);
  Expect(1, false, false, 0);
  Expect(2, true, false, 1024);
}

TEST_F(StagingTest, PeaksAreOfTheLargestThatMayBeInFlight) {
  Add(Role::kSource, 0, kSame, 0, 100, 2);
  Add(Role::kDestination, 1, kSame, 0, 150, 2);
  Add(Role::kSource, 0, kSame, 0, 300, 2);
  Add(Role::kSource, 0, kSame, 0, 200, 2);
  AddStagingOf(2);
  EXPECT_EQ(plan_.peak_buckets_without_budget, 3);
  EXPECT_EQ(plan_.peak_bytes_without_budget, 300 + 200 + 150);
}

}  // namespace
}  // namespace sluice
