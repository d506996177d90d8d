// Addresses as text.
#include "net/address.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

using testing::HasSubstr;

TEST(TcpAddressTest, ReadsWhatItWrites) {
  const auto addresses = ParseTcpAddresses("10.0.0.1:4711,[2001:db8::1]:65535,127.0.0.1:1");
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  std::vector<std::string> texts;
  for (const TcpAddress& address : *addresses) texts.push_back(TcpAddressText(address));
  EXPECT_THAT(texts, testing::ElementsAre("10.0.0.1:4711", "[2001:db8::1]:65535", "127.0.0.1:1"));
}

TEST(TcpAddressTest, TakesIpv6WithAndWithoutBrackets) {
  EXPECT_EQ(TcpAddressText(*MakeTcpAddress("::1", 7)), "[::1]:7");
  EXPECT_EQ(TcpAddressText(*MakeTcpAddress("[::1]", 7)), "[::1]:7");
}

TEST(TcpAddressTest, RefusesWhatIsNoAddress) {
  for (const char* text :
       {"", ",", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:-1",
        "10.0.0.1:1,", "host:1", "10.0.0.256:1", "[::1:1", "[]:1", "::g:1", "10.0.0.1:1x"}) {
    const auto addresses = ParseTcpAddresses(text);
    EXPECT_TRUE(absl::IsInvalidArgument(addresses.status())) << text;
  }
  EXPECT_THAT(std::string(ParseTcpAddresses("nonsense").status().message()),
              HasSubstr("\"nonsense\""));
}

TEST(TcpAddressTest, RefusesTooManyAddresses) {
  const std::vector<std::string> most(kMaxTcpAddresses, "10.0.0.1:1");
  EXPECT_TRUE(ParseTcpAddresses(absl::StrJoin(most, ",")).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      ParseTcpAddresses(absl::StrJoin(most, ",") + ",10.0.0.1:1").status()));
}

TEST(TcpAddressTest, EndsThisHostsAddressesWithLoopback) {
  for (const bool with_ipv6 : {false, true}) {
    const std::vector<std::string> hosts = HostAddresses(with_ipv6);
    ASSERT_FALSE(hosts.empty());
    EXPECT_EQ(hosts.back(), "127.0.0.1");
    for (const std::string& host : hosts) {
      EXPECT_TRUE(MakeTcpAddress(host, 1).ok()) << host;
      if (host == hosts.back()) continue;
      const std::vector<std::string> others = HostAddresses(with_ipv6, host);
      EXPECT_EQ(others.front(), host);
      EXPECT_THAT(others, testing::UnorderedElementsAreArray(hosts));
    }
    // One of an interface that others are not told of.
    EXPECT_EQ(HostAddresses(with_ipv6, "10.9.0.1").front(), "10.9.0.1");
    EXPECT_EQ(HostAddresses(with_ipv6, "10.9.0.1").size(), hosts.size() + 1);
  }
}

}  // namespace
}  // namespace sluice
