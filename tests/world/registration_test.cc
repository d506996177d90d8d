// A member's place when its connection to the store breaks: it is the member's still.
#include "world/registration.h"

#include <memory>
#include <string>
#include <utility>

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

StoredMember Server(const std::string& id) {
  StoredMember member;
  member.id = id;
  member.role = "server";
  member.rank = 3;
  member.size = 4;
  member.roles = "server:4";
  member.host = "node7";
  member.pid = 4711;
  return member;
}

class RegistrationTest : public testing::Test {
 protected:
  void SetUp() override {
    auto registration =
        Registration::Make(ReachStore(proxy_.address()), "w", Server("own"), absl::Hours(1));
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
  const auto next = Registration::Make(late, "w", Server("next"), absl::Hours(1));
  EXPECT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(Holder(), "next");
}

TEST_F(RegistrationTest, AnotherProcessThatHasTakenThePlaceKeepsIt) {
  proxy_.Cut();
  std::unique_ptr<Registration> other;
  const Deadline limit(kPatience);
  while (other == nullptr && !limit.Passed()) {
    auto made = Registration::Make(store_, "w", Server("other"), absl::Hours(1));
    if (made.ok()) other = *std::move(made);
  }
  const absl::Status status = KeepAfterTheLoss();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("server 3 (process 4711 on node7)"));
  EXPECT_EQ(Holder(), "other");
}

}  // namespace
}  // namespace sluice::world_test
