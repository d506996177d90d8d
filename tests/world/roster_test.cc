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
class LossyStore : public SharedStore {
 public:
  using SharedStore::SharedStore;

  void Go() { gone_ = true; }
  int calls() const { return calls_; }

 private:
  absl::Status Ask(absl::string_view /*key*/) override {
    ++calls_;
    return gone_ ? absl::UnavailableError("the store is gone") : absl::OkStatus();
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
  const std::shared_ptr<LossyStore> store_ =
      std::make_shared<LossyStore>(ReachStore(proxy_.address()));
  std::vector<StoredMember> members_;
  std::unique_ptr<Roster> roster_;
};

// As after this process and the other one were stopped together, and this one alone goes on.
TEST_F(RosterTest, OthersThatWereLostMeanwhileAreNamed) {
  auto other = Registration::Make(ReachStore(proxy_.address()), "w", Server(1), absl::Hours(1));
  ASSERT_TRUE(other.ok()) << other.status();
  members_.push_back((*other)->member());
  EXPECT_TRUE(roster_->Check(members_, NeedsStore::kNo).ok());
  proxy_.CutClients();
  UntilItsPlaceIsLost();
  // As if the lease of the other one ended now.
  EXPECT_TRUE(ReachStore(server_->address())->Set(HereKey("w", "server", 1), "").ok());
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
