// Members that wait for each other in different calls, and those that only seem to.
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/fabric.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "transport/deadline.h"
#include "world/members.h"
#include "world/store/gated_store.h"
#include "world/store/store_tools.h"
#include "world/waiting_call.h"

namespace sluice::world_test {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

using Fabrics = std::vector<std::unique_ptr<Fabric>>;

// Counts how often its member has looked at what the others have said.
class LookingStore : public SharedStore {
 public:
  using SharedStore::SharedStore;

  int looks() const { return looks_; }

  absl::StatusOr<StoreEntries> List(absl::string_view prefix) override {
    auto entries = inner_->List(prefix);
    if (absl::EndsWith(prefix, "/waits/")) ++looks_;
    return entries;
  }

 private:
  std::atomic<int> looks_ = 0;
};

TEST(CallsTest, MakeFabricAndNextEpochDoNotMeet) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const auto worlds = JoinAll(AllOptions(store, {{"member", 3}}));
  std::vector<absl::Status> statuses(3);
  OnThreads(3, [&](int i) {
    World* const world = worlds[static_cast<size_t>(i)].get();
    statuses[static_cast<size_t>(i)] =
        i == 1 ? world->NextEpoch().status() : world->MakeFabric().status();
  });
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(status.ToString(), AllOf(HasSubstr("MakeFabric"), HasSubstr("NextEpoch"),
                                         HasSubstr("member 1 (process")));
  }
  // Then they agree.
  ExpectGathers(MakeFabrics(worlds));
  EXPECT_THAT(*store->List("sluice/waits/"), IsEmpty());
}

// One has said that it waits in MakeFabric, has got its fabric, and is then held up.
TEST(CallsTest, WhoIsLateIsNotInAnotherCall) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const auto gate = std::make_shared<GatedStore>(store);
  const auto looking = std::make_shared<LookingStore>(store);
  std::vector<WorldOptions> options = AllOptions(store, {{"member", 2}});
  options[0].own_store = looking;
  options[1].own_store = gate;
  const auto worlds = JoinAll(options);
  // Its card comes, and is held up when it is taken back.
  gate->HoldUp("/card/000001", 1);
  Fabrics fabrics(2);
  const auto next_epoch = [&](size_t i) {
    auto fabric = worlds[i]->NextEpoch();
    EXPECT_TRUE(fabric.ok()) << fabric.status();
    if (fabric.ok()) fabrics[i] = *std::move(fabric);
  };
  std::thread late([&] {
    const auto fabric = worlds[1]->MakeFabric();
    EXPECT_TRUE(fabric.ok()) << fabric.status();
    next_epoch(1);
  });
  AwaitEntries(*store, "sluice/waits/", 1);
  {
    const auto fabric = worlds[0]->MakeFabric();
    EXPECT_TRUE(fabric.ok()) << fabric.status();
  }
  gate->AwaitHeldUp();
  std::thread next([&] { next_epoch(0); });
  // It looks at what the late one has said a few times.
  AwaitEntries(*store, "sluice/waits/", 2);
  const int before = looking->looks();
  const Deadline limit(kPatience);
  while (looking->looks() < before + 2 && !limit.Passed()) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_GE(looking->looks(), before + 2);
  gate->LetGo();
  late.join();
  next.join();
  ExpectGathers(fabrics);
}

TEST(WaitingCallTest, TellsTheOthersAfterASecond) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  {
    WaitingCall one(store, "w", "id1", "epoch-3", absl::Minutes(10));
    WaitingCall other(store, "w", "id2", "abc-0", absl::Minutes(10));
    absl::SleepFor(absl::Seconds(1));
    EXPECT_THAT(*one.Others(), IsEmpty());
    EXPECT_THAT(*other.Others(), testing::ElementsAre(testing::Pair("id1", "epoch-3")));
    EXPECT_THAT(*one.Others(), testing::ElementsAre(testing::Pair("id2", "abc-0")));
  }
  EXPECT_THAT(*store->List("w/waits/"), IsEmpty());
}

}  // namespace
}  // namespace sluice::world_test
