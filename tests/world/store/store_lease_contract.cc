// The contract of leases.
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "world/store/store_contract.h"
#include "world/store/store_tools.h"

namespace sluice {
namespace {

using testing::IsEmpty;

constexpr absl::Duration kNone = absl::ZeroDuration();

// Whether a lease was kept for twice its length, and all that time others saw its key. A
// machine that stands still for that length may lose the lease, which then says so.
bool LastsLong(Store& holder, Store& other, const std::string& key) {
  const auto lease = holder.Hold(key, "here", absl::Milliseconds(500));
  EXPECT_TRUE(lease.ok()) << lease.status();
  if (!lease.ok()) return false;
  StoreView view;
  const absl::Time end = absl::Now() + absl::Seconds(1);
  while (absl::Now() < end) {
    const auto now = other.Watch(key, view.version, absl::Milliseconds(100));
    EXPECT_TRUE(now.ok()) << now.status();
    if (!now.ok() || !(*lease)->status().ok()) return false;
    view = *now;
    if (!Shows(view, key, "here")) {
      EXPECT_FALSE(AwaitLoss(**lease).ok()) << "its key went though the lease was kept";
      return false;
    }
  }
  return true;
}

// Whether others could not hold the key while a lease was kept. One that was lost says so.
bool IsHeldByOne(Store& holder, Store& other, const std::string& key) {
  const auto lease = holder.Hold(key, "here", absl::Milliseconds(500));
  EXPECT_TRUE(lease.ok()) << lease.status();
  if (!lease.ok()) return false;
  const absl::Status there = other.Hold(key, "there").status();
  const absl::Status here = holder.Hold(key, "here").status();
  const bool is_held = absl::IsAlreadyExists(there) && absl::IsAlreadyExists(here) &&
                       other.Get(key, kNone).value_or("") == "here";
  if (is_held) return (*lease)->status().ok();
  EXPECT_FALSE(AwaitLoss(**lease).ok()) << "held though the lease was kept: " << there << here;
  return false;
}

}  // namespace

TEST_P(StoreLeaseContract, AHeldKeyIsThereUntilItIsReleased) {
  const auto holder = Open();
  const auto other = Open();
  auto lease = holder->Hold("m/1", "here", absl::Minutes(1)).value();
  EXPECT_TRUE(lease->status().ok());
  EXPECT_EQ(*other->Get("m/1", kNone), "here");
  const auto view = other->Watch("m/", 0, kHang).value();
  EXPECT_TRUE(Shows(view, "m/1", "here"));
  EXPECT_EQ(view.entries.size(), 1u);
  EXPECT_TRUE(lease->Release().ok());
  AwaitNone(*other, "m/");
  EXPECT_TRUE(absl::IsDeadlineExceeded(other->Get("m/1", kNone).status()));
  EXPECT_TRUE(lease->Release().ok());  // again
}

TEST_P(StoreLeaseContract, AHeldKeyGoesWithItsLease) {
  const auto holder = Open();
  const auto other = Open();
  auto lease = holder->Hold("m/1", "here", absl::Minutes(1)).value();
  lease.reset();
  AwaitNone(*other, "m/");
  // The next one may have it.
  const auto next = other->Hold("m/1", "there", absl::Minutes(1)).value();
  EXPECT_EQ(*holder->Get("m/1", kNone), "there");
}

TEST_P(StoreLeaseContract, OneHoldsAKey) {
  const auto other = Open();
  constexpr int kTries = 30;
  for (int i = 0; i < kTries; ++i) {
    const auto holder = Open();
    if (IsHeldByOne(*holder, *other, absl::StrCat("m/", i))) return;
  }
  ADD_FAILURE() << "no lease was kept";
}

TEST_P(StoreLeaseContract, AKeyThatIsSetCannotBeHeld) {
  const auto store = Open();
  EXPECT_TRUE(store->Set("m/1", "plain").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(store->Hold("m/1", "held").status()));
  EXPECT_TRUE(absl::IsAlreadyExists(store->Hold("m/1", "plain").status()));
  EXPECT_EQ(*store->Get("m/1", kNone), "plain");
  EXPECT_TRUE(store->Set("m/1", "").ok());
  EXPECT_TRUE(store->Hold("m/1", "held").ok());
}

TEST_P(StoreLeaseContract, BadHoldsAreRefused) {
  const auto store = Open();
  const auto refused = [&](const std::string& value, absl::Duration lease) {
    return absl::IsInvalidArgument(store->Hold("m/1", value, lease).status());
  };
  EXPECT_TRUE(refused("", absl::Seconds(5)));
  EXPECT_TRUE(refused("v", absl::Milliseconds(99)));
  EXPECT_TRUE(refused("v", absl::Hours(2)));
  EXPECT_TRUE(refused("v", -absl::Seconds(5)));
  EXPECT_TRUE(refused("v", absl::InfiniteDuration()));
  EXPECT_TRUE(refused(std::string(kMaxStoreValueBytes + 1, 'v'), absl::Seconds(5)));
  EXPECT_THAT(*store->List(""), IsEmpty());
}

TEST_P(StoreLeaseContract, TheHolderMayChangeTheValue) {
  const auto store = Open();
  const auto other = Open();
  auto lease = store->Hold("m/1", "one", absl::Minutes(1)).value();
  EXPECT_TRUE(store->Set("m/1", "two").ok());
  EXPECT_EQ(*other->Get("m/1", kNone), "two");
  lease.reset();
  AwaitNone(*other, "m/");
}

TEST_P(StoreLeaseContract, ALeaseOutlastsItsTime) {
  const auto other = Open();
  constexpr int kTries = 30;
  for (int i = 0; i < kTries; ++i) {
    // A store whose connection has ended serves the next try, too.
    const auto holder = Open();
    if (LastsLong(*holder, *other, absl::StrCat("m/", i))) return;
  }
  ADD_FAILURE() << "no lease was kept";
}

TEST_P(StoreLeaseContract, ManyLeasesOfOneMember) {
  const auto store = Open();
  const auto other = Open();
  std::vector<std::unique_ptr<StoreLease>> leases;
  for (int i = 0; i < 10; ++i) {
    auto lease = store->Hold(absl::StrCat("m/", i), "v", absl::Minutes(1 + i));
    ASSERT_TRUE(lease.ok()) << lease.status();
    leases.push_back(*std::move(lease));
  }
  EXPECT_EQ(other->Watch("m/", 0, kNone)->entries.size(), 10u);
  leases.erase(leases.begin(), leases.begin() + 5);
  WatchUntil(*other, "m/", [](const StoreView& view) { return view.entries.size() == 5; });
  leases.clear();
  AwaitNone(*other, "m/");
}

TEST_P(StoreLeaseContract, AForkedChildIsTold) {
  auto store = Open();
  const auto other = Open();
  auto held = store->Hold("m/1", "here", absl::Minutes(1)).value();
  std::unique_ptr<StoreLease> lease = std::move(held);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);  // a hang ends
    const auto told = [](const absl::Status& status) { return absl::IsFailedPrecondition(status); };
    int wrong = 0;
    if (!told(store->Set("a", "1"))) wrong = 1;
    if (!told(store->Get("a", kHang).status())) wrong = 2;
    if (!told(store->Add("a", 1).status())) wrong = 3;
    if (!told(store->CompareSet("a", "", "1").status())) wrong = 4;
    if (!told(store->List("").status())) wrong = 5;
    if (!told(store->Watch("", 0, kHang).status())) wrong = 6;
    if (!told(store->Hold("m/2", "v").status())) wrong = 7;
    if (!told(lease->status())) wrong = 8;
    if (!told(lease->Release())) wrong = 9;
    lease.reset();
    store.reset();
    _exit(wrong);
  }
  int outcome = 0;
  ASSERT_EQ(waitpid(child, &outcome, 0), child);
  EXPECT_TRUE(WIFEXITED(outcome)) << "signal " << WTERMSIG(outcome);
  EXPECT_EQ(WEXITSTATUS(outcome), 0);
  EXPECT_TRUE(lease->status().ok()) << lease->status();
  EXPECT_EQ(*other->Get("m/1", kNone), "here");
}

}  // namespace sluice
