// Addresses of stores as texts.
#include "world/store/store_address.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(StoreAddressTest, TextsComeThrough) {
  for (const std::string text : {"tcp://127.0.0.1:4711", "tcp://trainer-0.jobs:1",
                                 "tcp://[::1]:65535", "tcp://[fe80::1%eth0]:80"}) {
    const auto address = ParseStoreAddress(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->Text(), text);
  }
  EXPECT_EQ(ParseStoreAddress("tcp://[::1]:80")->host, "::1");
}

TEST(StoreAddressTest, OtherTextsAreRefused) {
  for (const std::string text :
       {"", "127.0.0.1:4711", "http://a:1", "tcp://a", "tcp://:1", "tcp://a:", "tcp://a:0",
        "tcp://a:65536", "tcp://a:-1", "tcp://a:+1", "tcp://a: 1", "tcp://::1:80", "tcp://[::1:80",
        "tcp://a b:1", "tcp://a/b:1", "tcp://a:1/", "tcp://[]:1", "tcp://a\n:1",
        "tcp://a:99999999999999999999"}) {
    const auto address = ParseStoreAddress(text);
    EXPECT_TRUE(absl::IsInvalidArgument(address.status())) << text;
  }
  EXPECT_FALSE(ParseStoreAddress("tcp://" + std::string(300, 'a') + ":1").ok());
  EXPECT_LT(ParseStoreAddress(std::string(5000, 'a')).status().message().size(), 500u);
}

TEST(StoreAddressTest, KnowsTheLoopbackInterface) {
  const auto is_loopback = [](const std::string& host) {
    const auto found = ResolveStoreHost(host, 80);
    return found.ok() && !found->empty() && found->front().IsLoopback();
  };
  EXPECT_TRUE(is_loopback("127.0.0.1"));
  EXPECT_TRUE(is_loopback("127.9.9.9"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_TRUE(is_loopback("::ffff:127.0.0.1"));
  EXPECT_FALSE(is_loopback("10.0.0.1"));
  EXPECT_FALSE(is_loopback("0.0.0.0"));
  EXPECT_FALSE(is_loopback("::"));
  EXPECT_FALSE(is_loopback("::ffff:10.0.0.1"));
  EXPECT_FALSE(is_loopback(""));
  EXPECT_FALSE(is_loopback("no host; no name"));
}

TEST(StoreAddressTest, ShowsAddresses) {
  EXPECT_EQ(ResolveStoreHost("10.0.0.7", 4711)->front().Text(), "10.0.0.7:4711");
  EXPECT_EQ(ResolveStoreHost("::1", 80)->front().Text(), "[::1]:80");
  EXPECT_EQ(ResolveStoreHost("::1", 80)->front().port(), 80);
}

}  // namespace
}  // namespace sluice
