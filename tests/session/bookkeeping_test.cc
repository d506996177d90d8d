// What a session keeps for the slots of its transfers: with many tiny buckets, no more than the
// budget and a constant.
#include "session/base/bookkeeping.h"

#include <cstdint>
#include <utility>

#include "gtest/gtest.h"
#include "session/heap_bytes.h"
#include "session/world.h"
#include "sluice/session.h"

namespace sluice::session_test {
namespace {

// What each rank's heap has grown by when it has compiled a transfer of `buckets` buckets for each
// priority class. As far as channels go, 2048 buckets may be in flight at once. Staging is not of
// the heap.
int64_t HeapOf(int64_t bucket_bytes, int64_t buckets, int64_t budget_buckets) {
  int64_t grown = 0;
  RunRanks(2, [&](Rank& self) {
    auto session = Session::Create(std::move(self.fabric), {.bucket_bytes = bucket_bytes,
                                                            .max_in_flight = 1 << 16,
                                                            .budget_buckets = budget_buckets,
                                                            .budget_bytes = kNoLimit})
                       .value();
    const TensorTransfer tensor = {
        .name = "w",
        .shape = {bucket_bytes * buckets / 4},
        .src = {Mesh::Create({1}, {0}).value(), {Placement::Replicate()}},
        .dst = {Mesh::Create({1}, {1}).value(), {Placement::Replicate()}}};
    TransferSpec spec = {.tensors = {tensor}};
    self.meet();
    const int64_t before = HeapBytes();
    self.meet();
    for (spec.priority_class = 0; spec.priority_class < kPriorityClasses; ++spec.priority_class) {
      ASSERT_TRUE(session->Compile(spec).ok());
    }
    self.meet();
    if (self.rank == 0) grown = (HeapBytes() - before) / 2;
    self.meet();
    EXPECT_TRUE(session->Close().ok());
  });
  return grown;
}

TEST(SessionBookkeepingTest, TinyBucketsKeepToTheBudget) {
  constexpr int64_t kBuckets = 1 << 15;
  for (const int64_t bucket_bytes : {64, 256, 1024}) {
    // The plan is the same.
    const int64_t tables =
        HeapOf(bucket_bytes, kBuckets, kBuckets) - HeapOf(bucket_bytes, kBuckets, 16);
    EXPECT_LE(tables, kBuckets * bucket_bytes + kFreeBookkeepingBytes) << bucket_bytes;
    EXPECT_GE(tables, 256 << 10) << "what is kept is not counted";
  }
}

TEST(SessionBookkeepingTest, SlotsKeepNoMoreThanIsCounted) {
  constexpr int64_t kBucketBytes = 64 << 10;
  constexpr int64_t kBuckets = 1 << 12;
  const int64_t few = HeapOf(kBucketBytes, kBuckets, 128);
  const int64_t many = HeapOf(kBucketBytes, kBuckets, 2048);
  const int64_t each = (many - few) / (2048 - 128);
  EXPECT_LE(each, kSlotBookkeepingBytes + kMessageBookkeepingBytes);
  EXPECT_GT(each, 256) << "what is kept is not counted";
}

}  // namespace
}  // namespace sluice::session_test
