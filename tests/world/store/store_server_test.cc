// A server among clients that are greedy, deaf or silent: each is parted from by itself.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/store.h"
#include "transport/deadline.h"
#include "world/store/raw_client.h"
#include "world/store/store_tools.h"
#include "world/store/store_wire.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kForEver = absl::Hours(1);

// A client whose greeting was not too slow for the server, which parts from those that are.
std::unique_ptr<RawClient> GreetInTime(const StoreServer& server) {
  const Deadline limit(absl::Minutes(2));
  while (true) {
    auto client = std::make_unique<RawClient>(server.port());
    if (client->Greet()) return client;
    EXPECT_FALSE(limit.Passed()) << "no greeting is in time";
    if (limit.Passed()) return client;
  }
}

TEST(StoreServerTest, TakesNoMoreMembersThanItsLimit) {
  StoreServerOptions options = Patient();
  options.limits.connections = 2;
  const auto server = Serve(options);
  auto one = Reach(*server);
  const auto other = Reach(*server);
  RawClient third(server->port());
  EXPECT_FALSE(third.Greet());
  StoreOptions soon;
  soon.timeout = absl::Milliseconds(200);
  // A machine that is busy may need longer to hear of it.
  absl::Status refused;
  const Deadline limit(absl::Minutes(2));
  do {
    refused = ConnectStore(server->address(), soon).status();
  } while (absl::IsUnavailable(refused) && !limit.Passed());
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(server->address()));
  EXPECT_TRUE(other->Set("a", "1").ok());
  one.reset();
  EXPECT_TRUE(Serves(*server));
}

TEST(StoreServerTest, AFullTableStaysAsItWas) {
  StoreServerOptions options = Patient();
  options.limits.keys = 2;
  options.limits.bytes = 100;
  const auto server = Serve(options);
  const auto store = Reach(*server);
  EXPECT_TRUE(store->Set("a", std::string(50, 'x')).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(store->Set("b", std::string(50, 'x'))));
  EXPECT_TRUE(absl::IsResourceExhausted(store->Hold("b", std::string(50, 'x')).status()));
  EXPECT_TRUE(store->Set("b", "x").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(store->Add("c", 1).status()));
  EXPECT_EQ(store->List("")->size(), 2u);
}

TEST(StoreServerTest, AMemberHasNotTooManyCallsThatWait) {
  const auto server = Serve(Patient());
  RawClient greedy(server->port());
  ASSERT_TRUE(greedy.Greet());
  for (uint32_t id = 1; id <= 65; ++id) {
    ASSERT_TRUE(greedy.Send(Request(StoreCall::kGet, "never", "", 3'600'000, id)));
  }
  const auto reply = ParseReply(greedy.NextFrame()).value();
  EXPECT_EQ(reply.id, 65u);
  EXPECT_TRUE(absl::IsResourceExhausted(reply.status)) << reply.status;
}

// It hears why when it reads again, after the answer that had begun to leave.
TEST(StoreServerTest, AMemberThatReadsNothingIsTold) {
  StoreServerOptions options = Patient();
  options.limits.hello = absl::Seconds(5);
  const auto server = Serve(options);
  const auto other = Reach(*server);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(other->Set(absl::StrCat("big/", i), std::string(kMaxStoreValueBytes, 'v')).ok());
  }
  const auto deaf = GreetInTime(*server);
  EXPECT_TRUE(deaf->Send(Request(StoreCall::kHold, "m/1", "here", 3'600'000)));
  for (uint32_t id = 2; id < 50; ++id) {
    EXPECT_TRUE(deaf->Send(Request(StoreCall::kList, "big/", "", 0, id)));
  }
  EXPECT_TRUE(IsGone(*other, "m/1"));
  EXPECT_EQ(other->List("big/")->size(), 100u);
  const absl::Status told = deaf->AwaitError();
  EXPECT_TRUE(absl::IsResourceExhausted(told)) << told;
  EXPECT_THAT(std::string(told.message()), HasSubstr("taken nothing of its answers for 5s"));
  EXPECT_TRUE(deaf->AwaitEnd());
}

TEST(StoreServerTest, AHolderThatFallsSilentLosesItsKeys) {
  const auto server = Serve(Patient());
  const auto other = Reach(*server);
  RawClient silent(server->port());
  ASSERT_TRUE(silent.Greet());
  EXPECT_TRUE(silent.Send(Request(StoreCall::kHold, "m/1", "here", 300)));
  EXPECT_TRUE(ParseReply(silent.NextFrame())->status.ok());
  RawClient half(server->port());
  ASSERT_TRUE(half.Greet());
  EXPECT_TRUE(half.Send(Request(StoreCall::kHold, "m/2", "here", 300)));
  EXPECT_TRUE(ParseReply(half.NextFrame())->status.ok());
  // Half a frame is no sign of life.
  EXPECT_TRUE(half.Send(Request(StoreCall::kPing, "").substr(0, 9)));
  EXPECT_TRUE(IsGone(*other, "m/1"));
  EXPECT_TRUE(IsGone(*other, "m/2"));
  const absl::Status told = silent.AwaitError();
  EXPECT_TRUE(absl::IsAborted(told)) << told;
  EXPECT_THAT(std::string(told.message()), HasSubstr("300ms"));
  EXPECT_TRUE(silent.AwaitEnd());
}

TEST(StoreServerTest, AConnectionThatEndsTakesItsKeysAlong) {
  const auto server = Serve(Patient());
  const auto other = Reach(*server);
  {
    RawClient short_lived(server->port());
    ASSERT_TRUE(short_lived.Greet());
    EXPECT_TRUE(short_lived.Send(Request(StoreCall::kHold, "m/1", "here", 3'600'000)));
    EXPECT_TRUE(ParseReply(short_lived.NextFrame())->status.ok());
    EXPECT_EQ(*other->Get("m/1", absl::ZeroDuration()), "here");
    short_lived.Send(Request(StoreCall::kSet, "last", "word") + "\x50");  // and half a frame
  }
  EXPECT_TRUE(IsGone(*other, "m/1"));
  EXPECT_EQ(*other->Get("last", absl::Seconds(120)), "word");
}

TEST(StoreServerTest, OneHolderCannotReleaseForAnother) {
  const auto server = Serve(Patient());
  const auto other = Reach(*server);
  const auto lease = other->Hold("m/1", "here", kForEver).value();
  RawClient stranger(server->port());
  ASSERT_TRUE(stranger.Greet());
  for (int64_t hold = 0; hold < 5; ++hold) {
    EXPECT_TRUE(stranger.Send(Request(StoreCall::kRelease, "m/1", "", hold)));
    EXPECT_TRUE(ParseReply(stranger.NextFrame())->status.ok());
  }
  EXPECT_EQ(*other->Get("m/1", absl::ZeroDuration()), "here");
}

TEST(StoreServerTest, ManyWatchersHearOfAChange) {
  constexpr int kWatchers = 40;
  const auto server = Serve(Patient());
  const auto holder = Reach(*server);
  std::vector<std::unique_ptr<StoreLease>> leases;
  for (int i = 0; i < 3; ++i) leases.push_back(*holder->Hold(absl::StrCat("m/", i), "v", kForEver));
  std::vector<std::thread> watchers;
  for (int i = 0; i < kWatchers; ++i) {
    watchers.emplace_back([&] {
      const auto store = Reach(*server);
      AwaitEntries(*store, "m/", 3);
      EXPECT_TRUE(store->Add("seen", 1).ok());
      AwaitNone(*store, "m/");
    });
  }
  WatchUntil(*holder, "seen",
             [](const StoreView& view) { return Shows(view, "seen", absl::StrCat(kWatchers)); });
  leases.clear();
  for (std::thread& watcher : watchers) watcher.join();
}

}  // namespace
}  // namespace sluice
