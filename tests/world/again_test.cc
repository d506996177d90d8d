// Worlds of one job, one after another at one address. A member comes to the next one while others
// are still in the one before.
#include <atomic>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/fabric.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "transport/deadline.h"
#include "world/members.h"
#include "world/store/free_port.h"
#include "world/store/store_tools.h"

namespace sluice::world_test {
namespace {

constexpr int kSize = 3;
constexpr int kRounds = 4;

class WorldAgainTest : public testing::TestWithParam<std::tuple<bool, int>> {
 protected:
  // Whether rank 0 serves the store, and who leaves each world last.
  bool is_served() const { return std::get<0>(GetParam()); }
  int last() const { return std::get<1>(GetParam()); }

  // Until the others have left, and wait for this member in the next world.
  void AwaitOthers(const std::string& address, int left) {
    const Deadline limit(kPatience);
    while (left_ < left && !limit.Passed()) absl::SleepFor(absl::Milliseconds(1));
    const auto store = ConnectStore(address, {});
    ASSERT_TRUE(store.ok()) << store.status();
    const bool is_old_store = !is_served() || last() == 0;
    const std::string prefix = is_old_store ? "sluice/fabric/" : "sluice/member/";
    const size_t entries = is_old_store ? kSize : 2 * (kSize - 1);
    AwaitEntries(**store, prefix, entries);
  }

  std::atomic<int> left_ = 0;
};

TEST_P(WorldAgainTest, AllMeetInEachOfThem) {
  const FreePort port;
  std::unique_ptr<StoreServer> apart;
  if (!is_served()) apart = ServeOnLoopback();
  const std::string address = is_served() ? port.address() : apart->address();
  std::vector<WorldOptions> options = AllOptions(nullptr, {{"member", kSize}});
  for (WorldOptions& each : options) {
    each.store = address;
    each.serve = is_served() && each.rank == 0;
  }
  OnThreads(kSize, [&](int i) {
    for (int round = 1; round <= kRounds; ++round) {
      auto world = World::Join(options[static_cast<size_t>(i)]);
      ASSERT_TRUE(world.ok()) << round << ": " << world.status();
      auto fabric = (*world)->MakeFabric();
      ASSERT_TRUE(fabric.ok()) << round << ": " << fabric.status();
      ASSERT_EQ((*fabric)->size(), kSize);
      ExpectGather(fabric->get());
      if (i == last() && round < kRounds) AwaitOthers(address, round * (kSize - 1));
      *world = nullptr;
      if (i != last()) ++left_;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(World, WorldAgainTest,
                         testing::Combine(testing::Bool(), testing::Range(0, kSize)),
                         [](const auto& test) {
                           return absl::StrCat(std::get<0>(test.param) ? "Served" : "Apart", "Last",
                                               std::get<1>(test.param));
                         });

}  // namespace
}  // namespace sluice::world_test
