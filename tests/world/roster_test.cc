// What a roster says of the members after its own place at the store was lost.
#include "world/roster.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/store.h"
#include "transport/deadline.h"
#include "world/attendance.h"
#include "world/members.h"
#include "world/store/store_tools.h"
#include "world/store/test_proxy.h"

namespace sluice::world_test {
namespace {

using testing::HasSubstr;

// A store that can be gone from one moment to the next, and counts how often it is asked.
class LossyStore : public FiveCalls {
 public:
  using FiveCalls::FiveCalls;

  void Go() { gone_ = true; }
  int calls() const { return calls_; }

  absl::Status Set(absl::string_view key, absl::string_view value) override {
    return Reached() ? inner_->Set(key, value) : Gone();
  }
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout) override {
    if (!Reached()) return Gone();
    return inner_->Get(key, timeout);
  }
  absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta) override {
    if (!Reached()) return Gone();
    return inner_->Add(key, delta);
  }
  absl::StatusOr<std::string> CompareSet(absl::string_view key, absl::string_view expected,
                                         absl::string_view desired) override {
    if (!Reached()) return Gone();
    return inner_->CompareSet(key, expected, desired);
  }
  absl::StatusOr<StoreEntries> List(absl::string_view prefix) override {
    if (!Reached()) return Gone();
    return inner_->List(prefix);
  }
  absl::StatusOr<std::unique_ptr<StoreLease>> Hold(absl::string_view key, absl::string_view value,
                                                   absl::Duration lease) override {
    if (!Reached()) return Gone();
    return inner_->Hold(key, value, lease);
  }
  absl::StatusOr<StoreView> Watch(absl::string_view prefix, uint64_t version,
                                  absl::Duration timeout) override {
    if (!Reached()) return Gone();
    return inner_->Watch(prefix, version, timeout);
  }

 private:
  static absl::Status Gone() { return absl::UnavailableError("the store is gone"); }
  bool Reached() {
    ++calls_;
    return !gone_;
  }

  std::atomic<bool> gone_ = false;
  std::atomic<int> calls_ = 0;
};

class RosterTest : public testing::Test {
 protected:
  static StoredMember Server(int rank) {
    StoredMember member;
    member.id = absl::StrCat("id", rank);
    member.role = "server";
    member.rank = rank;
    member.size = 2;
    member.roles = "server:2";
    member.host = "node7";
    member.pid = 4711 + rank;
    return member;
  }

  static std::shared_ptr<Store> Reach(const std::string& address) {
    StoreOptions options;
    options.timeout = kPatience;
    auto store = ConnectStore(address, options);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? std::shared_ptr<Store>(*std::move(store)) : nullptr;
  }

  void SetUp() override {
    auto own = Registration::Make(store_, "w", Server(0), absl::Hours(1));
    ASSERT_TRUE(own.ok()) << own.status();
    members_ = {(*own)->member()};
    roster_ = std::make_unique<Roster>(store_, "w", *std::move(own));
  }

  void UntilItsPlaceIsLost() {
    const Deadline limit(kPatience);
    while (roster_->is_held() && !limit.Passed()) absl::SleepFor(absl::Milliseconds(5));
    ASSERT_FALSE(roster_->is_held());
  }

  const std::unique_ptr<StoreServer> server_ = ServeOnLoopback();
  TestProxy proxy_{server_->port()};
  const std::shared_ptr<LossyStore> store_ = std::make_shared<LossyStore>(Reach(proxy_.address()));
  std::vector<StoredMember> members_;
  std::unique_ptr<Roster> roster_;
};

// As after this process and the other one were stopped together, and this one alone goes on.
TEST_F(RosterTest, OthersThatWereLostMeanwhileAreNamed) {
  auto other = Registration::Make(Reach(proxy_.address()), "w", Server(1), absl::Hours(1));
  ASSERT_TRUE(other.ok()) << other.status();
  members_.push_back((*other)->member());
  EXPECT_TRUE(roster_->Check(members_, NeedsStore::kNo).ok());
  proxy_.CutClients();
  UntilItsPlaceIsLost();
  // As if the lease of the other one ended now.
  EXPECT_TRUE(Reach(server_->address())->Set(HereKey("w", "server", 1), "").ok());
  absl::Status status;
  const Deadline limit(kPatience);
  while (status.ok() && !limit.Passed()) status = roster_->Check(members_, NeedsStore::kNo);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("server 1 (process 4712 on node7) was lost"));
}

// Members that have found each other do without it. It is not asked twice.
TEST_F(RosterTest, AStoreThatIsGoneIsNoError) {
  store_->Go();
  proxy_.Cut();
  UntilItsPlaceIsLost();
  EXPECT_TRUE(roster_->Check(members_, NeedsStore::kNo).ok());
  const int asked = store_->calls();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(roster_->Check(members_, NeedsStore::kNo).ok());
  EXPECT_EQ(store_->calls(), asked);
  EXPECT_FALSE(roster_->Check(members_, NeedsStore::kYes).ok());
}

}  // namespace
}  // namespace sluice::world_test
