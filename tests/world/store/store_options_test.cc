// Which options, tokens and addresses a store and its clients take.
#include <ifaddrs.h>
#include <netinet/in.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/store.h"
#include "world/store/raw_client.h"
#include "world/store/store_address.h"
#include "world/store/store_check.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kNone = absl::ZeroDuration();
constexpr absl::Duration kForEver = absl::Hours(1);
constexpr absl::Duration kShort = absl::Milliseconds(200);

TEST(StoreOptionsTest, BadOptionsAreRefused) {
  const auto refused = [](const std::string& address, const StoreOptions& options) {
    return absl::IsInvalidArgument(ConnectStore(address, options).status());
  };
  EXPECT_TRUE(refused("127.0.0.1:80", {}));
  EXPECT_TRUE(refused("tcp://127.0.0.1:80", Limit(kNone)));
  EXPECT_TRUE(refused("tcp://127.0.0.1:80", Limit(-kShort)));
  EXPECT_TRUE(refused("tcp://127.0.0.1:80", Limit(kShort, std::string(5000, 't'))));
}

TEST(StoreOptionsTest, ServersHaveOptionsToo) {
  const auto code = [](const StoreServerOptions& options) {
    return StoreServer::Listen(options).status().code();
  };
  StoreServerOptions port;
  port.port = 70000;
  EXPECT_EQ(code(port), absl::StatusCode::kInvalidArgument);
  StoreServerOptions none;
  none.limits.connections = 0;
  EXPECT_EQ(code(none), absl::StatusCode::kInvalidArgument);
  const auto server = Serve();
  StoreServerOptions taken;
  taken.port = server->port();
  EXPECT_EQ(code(taken), absl::StatusCode::kAlreadyExists);
  StoreServerOptions elsewhere;
  elsewhere.bind = "192.0.2.1";  // nobody's
  elsewhere.token = "secret";
  EXPECT_EQ(code(elsewhere), absl::StatusCode::kUnavailable);
}

// As a key of HMAC, "secret" with a zero byte behind it is "secret".
TEST(StoreOptionsTest, TokensHaveNoZeroBytes) {
  for (const std::string& token : {std::string("secret\0", 7), std::string("\0", 1)}) {
    StoreServerOptions options;
    options.token = token;
    EXPECT_TRUE(absl::IsInvalidArgument(StoreServer::Listen(options).status()));
    const auto store = ConnectStore("tcp://127.0.0.1:4711", Limit(kForEver, token));
    EXPECT_TRUE(absl::IsInvalidArgument(store.status())) << store.status();
  }
}

TEST(StoreOptionsTest, DurationsInMessagesAreRound) {
  EXPECT_EQ(DurationText(absl::Seconds(5.99999995)), "6s");
  EXPECT_EQ(DurationText(absl::Seconds(0.29999999)), "300ms");
  EXPECT_EQ(DurationText(absl::Milliseconds(90050)), "1m30.05s");
  EXPECT_EQ(DurationText(absl::InfiniteDuration()), "inf");
}

TEST(StoreOptionsTest, BeyondTheLoopbackInterfaceATokenIsRequired) {
  for (const std::string bind : {"", "0.0.0.0", "::", "192.0.2.1"}) {
    StoreServerOptions options;
    options.bind = bind;
    const auto server = StoreServer::Listen(options);
    EXPECT_TRUE(absl::IsFailedPrecondition(server.status())) << bind << server.status();
  }
  const auto store = ConnectStore("tcp://192.0.2.1:4711", Limit(kForEver));
  EXPECT_TRUE(absl::IsFailedPrecondition(store.status())) << store.status();
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("tcp://192.0.2.1:4711"));
}

TEST(StoreOptionsTest, ATokenWorksOverOtherInterfaces) {
  StoreServerOptions options;
  options.bind = "";
  options.token = "secret";
  const auto server = Serve(options);
  ifaddrs* all = nullptr;
  ASSERT_EQ(getifaddrs(&all), 0);
  std::string host;
  for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    SocketAddress address;
    address.length = sizeof(sockaddr_in);
    std::memcpy(&address.storage, at->ifa_addr, sizeof(sockaddr_in));
    if (address.IsLoopback()) continue;
    host = address.Text().substr(0, address.Text().find(':'));
  }
  freeifaddrs(all);
  if (host.empty()) GTEST_SKIP() << "this host has no other interface";
  const std::string address = absl::StrCat("tcp://", host, ":", server->port());
  const auto store = ConnectStore(address, Limit(absl::Minutes(2), "secret")).value();
  EXPECT_TRUE(store->Set("a", "1").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ConnectStore(address, Limit(absl::Minutes(2))).status()));
}

TEST(StoreOptionsTest, WrongTokensAreRefusedAtOnce) {
  StoreServerOptions with;
  with.token = "secret";
  const auto server = Serve(with);
  const auto open = Serve();
  const auto member = Reach(*server, "secret");
  for (int i = 0; i < 10; ++i) {
    // A limit that would not pass here.
    const auto wrong = ConnectStore(server->address(), Limit(kForEver, absl::StrCat("guess", i)));
    EXPECT_TRUE(absl::IsPermissionDenied(wrong.status())) << wrong.status();
  }
  EXPECT_TRUE(absl::IsPermissionDenied(ConnectStore(server->address(), {}).status()));
  EXPECT_TRUE(
      absl::IsPermissionDenied(ConnectStore(open->address(), Limit(kForEver, "secret")).status()));
  EXPECT_TRUE(member->Set("a", "1").ok());
}

}  // namespace
}  // namespace sluice
