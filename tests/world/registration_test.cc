// A member's place when its connection to the store breaks: it is the member's still. What a roster
// says of the members from then on.
#include "world/registration.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/store.h"
#include "transport/deadline.h"
#include "world/attendance.h"
#include "world/members.h"
#include "world/roster.h"
#include "world/store/store_tools.h"
#include "world/store/test_proxy.h"

namespace sluice::world_test {
namespace {

using testing::HasSubstr;

class RegistrationTest : public testing::Test {
 protected:
  void SetUp() override {
    auto registration = Registration::Make(ReachStore(proxy_.address()), "w",
                                           StoredServer("own", 3, 4), absl::Hours(1));
    ASSERT_TRUE(registration.ok()) << registration.status();
    registration_ = *std::move(registration);
  }

  // Keeps the place as soon as the store is reached again.
  absl::Status KeepAfterTheLoss() {
    const Deadline limit(kPatience);
    while (registration_->is_held() && !limit.Passed()) absl::SleepFor(absl::Milliseconds(5));
    absl::Status status;
    do {
      status = registration_->Keep();
    } while (absl::IsUnavailable(status));
    return status;
  }

  std::string Holder() {
    const auto text = store_->Get(HereKey("w", "server", 3), absl::ZeroDuration());
    return text.ok() ? ParseMember(*text)->id : text.status().ToString();
  }

  const std::unique_ptr<StoreServer> server_ = ServeOnLoopback();
  TestProxy proxy_{server_->port()};
  const std::shared_ptr<Store> store_ = ReachStore(server_->address());
  std::unique_ptr<Registration> registration_;
};

// The store has not noticed that the old connection has ended, and its lease lasts an hour.
TEST_F(RegistrationTest, ItsOwnOldHoldDoesNotKeepItOut) {
  proxy_.CutClients();
  const absl::Status status = KeepAfterTheLoss();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(registration_->is_held());
  EXPECT_EQ(Holder(), "own");
}

// Its holder ends when somebody has looked who holds a place.
class LateNews : public SharedStore {
 public:
  LateNews(std::shared_ptr<Store> inner, std::unique_ptr<Registration>* holder)
      : SharedStore(std::move(inner)), holder_(holder) {}

  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout) override {
    auto value = SharedStore::Get(key, timeout);
    holder_->reset();
    return value;
  }

 private:
  std::unique_ptr<Registration>* const holder_;
};

// As one that a supervisor starts at once when the first one was killed.
TEST_F(RegistrationTest, ASuccessorWaitsForTheEndOfItsPredecessor) {
  auto late = std::make_shared<LateNews>(store_, &registration_);
  const auto next = Registration::Make(late, "w", StoredServer("next", 3, 4), absl::Hours(1));
  EXPECT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(Holder(), "next");
}

TEST_F(RegistrationTest, AnotherProcessThatHasTakenThePlaceKeepsIt) {
  proxy_.Cut();
  std::unique_ptr<Registration> other;
  const Deadline limit(kPatience);
  while (other == nullptr && !limit.Passed()) {
    auto made = Registration::Make(store_, "w", StoredServer("other", 3, 4), absl::Hours(1));
    if (made.ok()) other = *std::move(made);
  }
  const absl::Status status = KeepAfterTheLoss();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("server 3 (process 4714 on node7)"));
  EXPECT_EQ(Holder(), "other");
}

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
  void SetUp() override {
    auto own = Registration::Make(store_, "w", StoredServer("id0", 0, 2), absl::Hours(1));
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
  auto other = Registration::Make(ReachStore(proxy_.address()), "w", StoredServer("id1", 1, 2),
                                  absl::Hours(1));
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
