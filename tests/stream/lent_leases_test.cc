// Leases of what a source has lent, whose bytes may go while they are held.
#include "session/stream/lent_leases.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "session/stream/delivery.h"
#include "storage/source.h"

namespace sluice {
namespace {

// A mapping of a file that has so many bytes by now.
class ShrinkingMemory final : public LentMemory {
 public:
  absl::Status Check(int64_t end) const override {
    last_end = end;
    return end <= bytes ? absl::OkStatus() : absl::DataLossError("it has shrunk");
  }

  int64_t bytes = 100;
  mutable int64_t last_end = 0;
};

class LentLeasesTest : public testing::Test {
 protected:
  DeliveredItem Lent(int64_t end) const {
    DeliveredItem item;
    item.lender = file_;
    item.lent_end = end;
    return item;
  }

  const std::shared_ptr<ShrinkingMemory> file_ = std::make_shared<ShrinkingMemory>();
  LentLeases leases_;
};

TEST_F(LentLeasesTest, WhatIsGivenBackIsLookedAtToItsEnd) {
  const std::vector<DeliveredItem> lent = {Lent(80), Lent(50)};
  const std::vector<DeliveredItem> copied(2);
  leases_.Taken(0, lent);
  leases_.Taken(1, copied);
  EXPECT_FALSE(leases_.Release(1, copied));
  EXPECT_EQ(file_->last_end, 0) << "nobody has lent it";
  EXPECT_FALSE(leases_.Release(0, lent));
  EXPECT_EQ(file_->last_end, 80);
  file_->bytes = 79;
  EXPECT_FALSE(leases_.Release(0, lent)) << "it is not held any more";
  EXPECT_FALSE(leases_.gone());
  leases_.Taken(0, lent);
  EXPECT_TRUE(leases_.Release(0, lent));
  EXPECT_TRUE(leases_.gone());
  EXPECT_EQ(leases_.status(), absl::DataLossError("it has shrunk"));
  leases_.Taken(0, lent);
  EXPECT_FALSE(leases_.Release(0, lent)) << "told once";
}

TEST_F(LentLeasesTest, WhatIsHeldIsLookedAtMeanwhile) {
  std::array<std::byte, 64> buffer;
  DeliveryMemory memory;
  memory.data = buffer.data();
  memory.stride = 64;
  const auto delivery = std::make_shared<Delivery>(std::move(memory), 1, 1);
  delivery->ItemsOf(delivery->TakeFree()) = {Lent(100)};
  delivery->Publish(0);
  EXPECT_FALSE(leases_.LookAtHeld(*delivery));
  const Lease lease = Delivery::Take(delivery);
  file_->bytes = 0;
  EXPECT_FALSE(leases_.LookAtHeld(*delivery)) << "nobody has told of it";
  leases_.Taken(0, delivery->LeasedItems(0));
  EXPECT_TRUE(leases_.LookAtHeld(*delivery));
  EXPECT_FALSE(leases_.LookAtHeld(*delivery)) << "told once";
  EXPECT_TRUE(leases_.gone());
}

}  // namespace
}  // namespace sluice
