// A client whose server is late, dead, another one, or no store at all.
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/socket.h"
#include "sluice/store.h"
#include "world/store/free_port.h"
#include "world/store/raw_client.h"
#include "world/store/store_tools.h"
#include "world/store/test_proxy.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr absl::Duration kNone = absl::ZeroDuration();
constexpr absl::Duration kForEver = absl::Hours(1);
constexpr absl::Duration kShort = absl::Milliseconds(200);

// A listener whose connections nobody accepts, or answers.
struct Deaf {
  Deaf() : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress at = *MakeAddress("127.0.0.1", 0);
    EXPECT_EQ(bind(fd.get(), at.get(), at.length), 0);
    EXPECT_EQ(listen(fd.get(), 10), 0);
  }
  std::string address() const { return absl::StrCat("tcp://", AddressOfSocket(fd.get()).Text()); }

  const Fd fd;
};

void ExpectUnavailable(const absl::Status& status, const std::string& address) {
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(address));
}

// A store that a client reaches through a network, and one of its own to look at the server with.
struct Beyond {
  explicit Beyond(absl::Duration timeout = absl::Minutes(2)) {
    StoreOptions options = Limit(timeout);
    options.connect_timeout = absl::Minutes(2);
    auto connected = ConnectStore(proxy.address(), options);
    EXPECT_TRUE(connected.ok()) << connected.status();
    if (connected.ok()) store = *std::move(connected);
  }

  std::unique_ptr<StoreLease> Hold(const std::string& key, absl::Duration lease) const {
    auto held = store->Hold(key, "here", lease);
    EXPECT_TRUE(held.ok()) << held.status();
    return held.ok() ? *std::move(held) : nullptr;
  }
  // Calls reach the server again, some time.
  void AwaitBack() const {
    absl::Status status;
    do {
      status = store->Set("back", "1");
    } while (absl::IsUnavailable(status));
    EXPECT_TRUE(status.ok()) << status;
  }

  std::unique_ptr<StoreServer> server = Serve();
  TestProxy proxy{server->port()};
  std::unique_ptr<Store> direct = Reach(*server);
  std::unique_ptr<Store> store;
};

TEST(TcpStoreTest, ConnectingWaitsForAServer) {
  const FreePort free;
  std::unique_ptr<StoreServer> server;
  std::thread late([&] {
    // For the client to be refused before, which it need not be.
    absl::SleepFor(absl::Milliseconds(300));
    StoreServerOptions options;
    options.port = free.port();
    server = Serve(options);
  });
  const auto store = ConnectStore(free.address(), Limit(absl::Minutes(2)));
  late.join();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->Set("a", "1").ok());
}

TEST(TcpStoreTest, NobodyThereIsUnavailable) {
  const FreePort free;
  ExpectUnavailable(ConnectStore(free.address(), Limit(kShort)).status(), free.address());
  EXPECT_TRUE(
      absl::IsUnavailable(ConnectStore("tcp://no-such-host.invalid:80", Limit(kShort)).status()));
}

TEST(TcpStoreTest, WhoListensAndIsSilentIsToldFromNobody) {
  const Deaf deaf;
  const absl::Status silent = ConnectStore(deaf.address(), Limit(kShort)).status();
  ExpectUnavailable(silent, deaf.address());
  EXPECT_THAT(std::string(silent.message()),
              AllOf(HasSubstr("something listens there"), HasSubstr("another port")));
  const FreePort free;
  EXPECT_THAT(std::string(ConnectStore(free.address(), Limit(kShort)).status().message()),
              Not(HasSubstr("something listens")));
}

TEST(TcpStoreTest, WhoListensAndClosesIsToldFromNobody) {
  const Deaf other;
  std::thread closes([&] {
    for (int fd = 0; fd >= 0;) {
      fd = accept4(other.fd.get(), nullptr, nullptr, SOCK_CLOEXEC);
      close(fd);
    }
  });
  absl::Status status;
  do {  // on a busy machine no try may end in time
    status = ConnectStore(other.address(), Limit(absl::Seconds(1))).status();
  } while (absl::StrContains(status.message(), "the time is over"));
  shutdown(other.fd.get(), SHUT_RDWR);
  closes.join();
  ExpectUnavailable(status, other.address());
  EXPECT_THAT(std::string(status.message()), HasSubstr("has closed the connection before"));
}

TEST(TcpStoreTest, WhatIsNoStoreIsNamed) {
  const Deaf other;
  std::thread talks([&] {
    const int fd = accept4(other.fd.get(), nullptr, nullptr, SOCK_CLOEXEC);
    const std::string text = "HTTP/1.1 400 Bad Request\r\n\r\n";
    EXPECT_GT(send(fd, text.data(), text.size(), MSG_NOSIGNAL), 0);
    char byte = 0;
    while (recv(fd, &byte, 1, 0) > 0) {
    }
    close(fd);
  });
  const auto store = ConnectStore(other.address(), Limit(kForEver));
  talks.join();
  EXPECT_TRUE(absl::IsInvalidArgument(store.status())) << store.status();
  EXPECT_THAT(std::string(store.status().message()), HasSubstr(other.address()));
}

TEST(TcpStoreTest, ADeadServerFailsAllCalls) {
  auto server = Serve();
  const std::string address = server->address();
  const auto store = Reach(*server);
  const auto lease = store->Hold("m/1", "here", kForEver).value();
  std::thread waits([&] { ExpectUnavailable(store->Get("never", kForEver).status(), address); });
  std::thread watches([&] {
    absl::StatusOr<StoreView> view = StoreView();
    while (view.ok()) view = store->Watch("never", view->version, kForEver);
    ExpectUnavailable(view.status(), address);
  });
  server.reset();
  waits.join();
  watches.join();
  ExpectUnavailable(store->Set("a", "1"), address);
  ExpectUnavailable(store->Get("a", kNone).status(), address);
  ExpectUnavailable(store->Add("a", 1).status(), address);
  ExpectUnavailable(store->CompareSet("a", "", "1").status(), address);
  ExpectUnavailable(store->List("").status(), address);
  ExpectUnavailable(store->Watch("", 0, kNone).status(), address);
  ExpectUnavailable(store->Hold("m/2", "v").status(), address);
  ExpectUnavailable(lease->status(), address);
  ExpectUnavailable(lease->Release(), address);
}

TEST(TcpStoreTest, ARestartedServerIsNotTakenForTheSame) {
  const FreePort kept;  // that nobody else is given the port in between
  StoreServerOptions same;
  same.port = kept.port();
  auto server = Serve(same);
  const auto store = Reach(*server);
  EXPECT_TRUE(store->Set("a", "1").ok());
  server.reset();
  server = Serve(same);
  absl::Status status;
  // The call that meets the end of the old one may be told of that.
  do {
    status = store->Get("a", kNone).status();
  } while (absl::IsUnavailable(status));
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(server->address()));
  EXPECT_TRUE(absl::IsFailedPrecondition(store->Set("a", "2")));  // from then on
  EXPECT_TRUE(Reach(*server)->Set("a", "3").ok());
}

TEST(TcpStoreTest, ABrokenConnectionIsMadeAnewAndItsLeasesAreNot) {
  Beyond beyond;
  EXPECT_TRUE(beyond.store->Set("a", "1").ok());
  const auto lease = beyond.Hold("m/1", kForEver);
  beyond.proxy.Cut();
  EXPECT_TRUE(IsGone(*beyond.direct, "m/1"));
  beyond.AwaitBack();
  EXPECT_EQ(*beyond.store->Get("a", kNone), "1");
  ExpectUnavailable(lease->status(), beyond.proxy.address());
  const auto again = beyond.store->Hold("m/1", "again", kForEver).value();
  // The old one's end is not the new one's.
  EXPECT_FALSE(lease->Release().ok());
  EXPECT_EQ(*beyond.direct->Get("m/1", kNone), "again");
}

TEST(TcpStoreTest, APartitionEndsTheLeaseAtBothEnds) {
  Beyond beyond;
  const std::string address = beyond.proxy.address();
  const auto lease = beyond.Hold("m/1", absl::Seconds(1));
  std::thread waits(
      [&] { ExpectUnavailable(beyond.store->Get("never", kForEver).status(), address); });
  beyond.proxy.Freeze(true);
  EXPECT_TRUE(IsGone(*beyond.direct, "m/1"));
  waits.join();
  ExpectUnavailable(lease->status(), address);
  beyond.proxy.Freeze(false);
  beyond.AwaitBack();
}

// The server closes its half, as after a cut that nobody tells the client of: the lease ends.
TEST(TcpStoreTest, HalfAConnectionEndsTheLease) {
  Beyond beyond;
  const auto lease = beyond.Hold("m/1", absl::Seconds(1));
  beyond.proxy.CutServers();
  EXPECT_TRUE(IsGone(*beyond.direct, "m/1"));
  ExpectUnavailable(beyond.store->Get("never", kForEver).status(), beyond.proxy.address());
  ExpectUnavailable(lease->status(), beyond.proxy.address());
  beyond.AwaitBack();
}

// The client closes its half, and the server is not told: only the lease ends the hold.
TEST(TcpStoreTest, HalfAConnectionIsSilentForTheServer) {
  Beyond beyond;
  const auto lease = beyond.Hold("m/1", absl::Seconds(1));
  beyond.proxy.CutClients();
  ExpectUnavailable(AwaitLoss(*lease), beyond.proxy.address());
  EXPECT_TRUE(IsGone(*beyond.direct, "m/1"));
}

// The server was last heard of longer ago than the lease lasts that now begins.
TEST(TcpStoreTest, AShortLeaseMayBeginAfterASilence) {
  const auto server = Serve();
  constexpr int kTries = 30;
  for (int i = 0; i < kTries; ++i) {
    TestProxy proxy(server->port());
    const auto store = ConnectStore(proxy.address(), Limit(absl::Minutes(2)));
    ASSERT_TRUE(store.ok()) << store.status();
    // It ends with the connection, which is made anew for calls that come later.
    const auto first = (*store)->Hold(absl::StrCat("m/", i), "here", kForEver);
    ASSERT_TRUE(first.ok()) << first.status();
    proxy.Freeze(true);
    absl::SleepFor(absl::Milliseconds(1200));
    std::thread thaws([&] {
      absl::SleepFor(absl::Milliseconds(100));
      proxy.Freeze(false);
    });
    const auto lease = (*store)->Hold(absl::StrCat("s/", i), "here", absl::Seconds(1));
    thaws.join();
    // A machine that stands still for so long may lose the lease, but not each time.
    if (lease.ok() && (*first)->status().ok()) return;
  }
  ADD_FAILURE() << "no lease has begun";
}

TEST(TcpStoreTest, ConnectingHasALimitOfItsOwn) {
  const auto server = Serve();
  TestProxy proxy(server->port());
  StoreOptions options = Limit(absl::Minutes(2));
  options.connect_timeout = absl::Milliseconds(500);
  absl::StatusOr<std::unique_ptr<Store>> store;
  const absl::Time end = absl::Now() + absl::Minutes(2);
  do {  // a machine that is busy takes longer, now and then
    store = ConnectStore(proxy.address(), options);
  } while (absl::IsUnavailable(store.status()) && absl::Now() < end);
  ASSERT_TRUE(store.ok()) << store.status();
  proxy.Freeze(true);
  std::thread thaws([&] {
    absl::SleepFor(absl::Milliseconds(700));
    proxy.Freeze(false);
  });
  const absl::Status status = (*store)->Set("a", "1");
  thaws.join();
  EXPECT_TRUE(status.ok()) << status;
  const Deaf deaf;
  options.connect_timeout = kShort;
  ExpectUnavailable(ConnectStore(deaf.address(), options).status(), deaf.address());
  options.connect_timeout = kNone;
  EXPECT_TRUE(absl::IsInvalidArgument(ConnectStore(proxy.address(), options).status()));
}

TEST(TcpStoreTest, ACallHasALimit) {
  Beyond beyond(absl::Milliseconds(500));
  beyond.proxy.Freeze(true);
  ExpectUnavailable(beyond.store->Set("a", "1"), beyond.proxy.address());
  ExpectUnavailable(beyond.store->Get("a", kNone).status(), beyond.proxy.address());
}

TEST(TcpStoreTest, TheServerPartsFromASilentClientThatHoldsNothing) {
  StoreServerOptions options;
  options.limits.silence = absl::Milliseconds(200);
  const auto server = Serve(options);
  RawClient silent(server->port());
  ASSERT_TRUE(silent.Greet());
  EXPECT_TRUE(absl::IsAborted(silent.AwaitError()));
  EXPECT_TRUE(silent.AwaitEnd());
}

}  // namespace
}  // namespace sluice
