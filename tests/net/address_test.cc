// Addresses as text.
#include "net/address.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

using testing::HasSubstr;

TEST(AddressTest, ReadsWhatItWrites) {
  const auto addresses = ParseAddresses("10.0.0.1:4711,[2001:db8::1]:65535,127.0.0.1:1");
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  std::vector<std::string> texts;
  for (const SocketAddress& address : *addresses) texts.push_back(address.Text());
  EXPECT_THAT(texts, testing::ElementsAre("10.0.0.1:4711", "[2001:db8::1]:65535", "127.0.0.1:1"));
}

TEST(AddressTest, TakesIpv6WithAndWithoutBrackets) {
  EXPECT_EQ(MakeAddress("::1", 7)->Text(), "[::1]:7");
  EXPECT_EQ(MakeAddress("[::1]", 7)->Text(), "[::1]:7");
}

TEST(AddressTest, KnowsTheLoopbackInterface) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(MakeAddress(host, 80)->IsLoopback()) << host;
  }
  for (const char* host : {"10.0.0.1", "0.0.0.0", "::", "::ffff:10.0.0.1", "fd00::1"}) {
    EXPECT_FALSE(MakeAddress(host, 80)->IsLoopback()) << host;
  }
  EXPECT_FALSE(SocketAddress().IsLoopback());
  EXPECT_EQ(SocketAddress().Text(), "an unknown address");
}

TEST(AddressTest, RefusesWhatIsNoAddress) {
  for (const char* text :
       {"", ",", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:-1",
        "10.0.0.1:1,", "host:1", "10.0.0.256:1", "[::1:1", "[]:1", "::g:1", "10.0.0.1:1x"}) {
    const auto addresses = ParseAddresses(text);
    EXPECT_TRUE(absl::IsInvalidArgument(addresses.status())) << text;
  }
  EXPECT_THAT(std::string(ParseAddresses("nonsense").status().message()),
              HasSubstr("\"nonsense\""));
}

TEST(AddressTest, RefusesTooManyAddresses) {
  const std::vector<std::string> most(kMaxAddresses, "10.0.0.1:1");
  EXPECT_TRUE(ParseAddresses(absl::StrJoin(most, ",")).ok());
  EXPECT_TRUE(
      absl::IsInvalidArgument(ParseAddresses(absl::StrJoin(most, ",") + ",10.0.0.1:1").status()));
}

TEST(AddressTest, EndsThisHostsAddressesWithLoopback) {
  for (const bool with_ipv6 : {false, true}) {
    const std::vector<std::string> hosts = HostAddresses(with_ipv6);
    ASSERT_FALSE(hosts.empty());
    EXPECT_EQ(hosts.back(), "127.0.0.1");
    for (const std::string& host : hosts) {
      EXPECT_TRUE(MakeAddress(host, 1).ok()) << host;
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
