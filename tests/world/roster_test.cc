// What a roster says of the members after its own place at the store was lost.
#include "world/roster.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/store.h"
#include "world/attendance.h"
#include "world/members.h"
#include "world/store/test_proxy.h"
#include "world/time_limit.h"

namespace sluice::world_test {
namespace {

using testing::HasSubstr;

class RosterTest : public testing::Test {
 protected:
  static Member Server(int rank) {
    Member member;
    member.id = absl::StrCat("id", rank);
    member.role = "server";
    member.rank = rank;
    member.size = 2;
    member.roles = "server:2";
    member.host = "node7";
    member.pid = 4711 + rank;
    return member;
  }

  std::shared_ptr<Store> Reach(absl::Duration timeout) {
    StoreOptions options;
    options.timeout = timeout;
    auto store = ConnectStore(proxy_.address(), options);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? std::shared_ptr<Store>(*std::move(store)) : nullptr;
  }

  void Join(absl::Duration timeout) {
    const std::shared_ptr<Store> store = Reach(timeout);
    auto own = Registration::Make(store, "w", Server(0), absl::Hours(1));
    ASSERT_TRUE(own.ok()) << own.status();
    members_ = {(*own)->member()};
    roster_ = std::make_unique<Roster>(store, "w", *std::move(own));
  }

  void UntilItsPlaceIsLost() {
    const TimeLimit limit(kPatience);
    while (roster_->is_held() && !limit.Passed()) absl::SleepFor(absl::Milliseconds(5));
    ASSERT_FALSE(roster_->is_held());
  }

  const std::unique_ptr<StoreServer> server_ = ServeOnLoopback();
  TestProxy proxy_{server_->port()};
  std::vector<Member> members_;
  std::unique_ptr<Roster> roster_;
};

// As after this process and the other one were stopped together, and this one alone goes on.
TEST_F(RosterTest, OthersThatWereLostMeanwhileAreNamed) {
  Join(kPatience);
  auto other = Registration::Make(Reach(kPatience), "w", Server(1), absl::Milliseconds(200));
  ASSERT_TRUE(other.ok()) << other.status();
  members_.push_back((*other)->member());
  EXPECT_TRUE(roster_->Check(members_, NeedsStore::kNo).ok());
  proxy_.CutClients();
  UntilItsPlaceIsLost();
  absl::Status status;
  const TimeLimit limit(kPatience);
  while (status.ok() && !limit.Passed()) status = roster_->Check(members_, NeedsStore::kNo);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("server 1 (process 4712 on node7) was lost"));
}

// Members that have found each other do without it. It is not asked twice.
TEST_F(RosterTest, AStoreThatIsGoneIsNoError) {
  constexpr absl::Duration kTimeout = absl::Milliseconds(300);
  Join(kTimeout);
  proxy_.Freeze(true);
  proxy_.Cut();
  UntilItsPlaceIsLost();
  EXPECT_TRUE(roster_->Check(members_, NeedsStore::kNo).ok());
  const absl::Time begin = absl::Now();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(roster_->Check(members_, NeedsStore::kNo).ok());
  EXPECT_LT(absl::Now() - begin, 50 * kTimeout);
  EXPECT_FALSE(roster_->Check(members_, NeedsStore::kYes).ok());
}

}  // namespace
}  // namespace sluice::world_test
