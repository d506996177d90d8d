// A member's place when its connection to the store breaks: it is the member's still.
#include "world/registration.h"

#include <memory>
#include <string>
#include <utility>

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

std::shared_ptr<Store> Reach(const std::string& address) {
  StoreOptions options;
  options.timeout = kPatience;
  auto store = ConnectStore(address, options);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? std::shared_ptr<Store>(*std::move(store)) : nullptr;
}

class RegistrationTest : public testing::Test {
 protected:
  void SetUp() override {
    auto registration =
        Registration::Make(Reach(proxy_.address()), "w", Server("own"), absl::Hours(1));
    ASSERT_TRUE(registration.ok()) << registration.status();
    registration_ = *std::move(registration);
  }

  // Keeps the place as soon as the store is reached again.
  absl::Status KeepAfterTheLoss() {
    const TimeLimit limit(kPatience);
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
  const std::shared_ptr<Store> store_ = Reach(server_->address());
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

TEST_F(RegistrationTest, AnotherProcessThatHasTakenThePlaceKeepsIt) {
  proxy_.Cut();
  std::unique_ptr<Registration> other;
  const TimeLimit limit(kPatience);
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
