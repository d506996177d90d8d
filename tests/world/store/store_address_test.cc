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

TEST(StoreAddressTest, AHostIsResolvedOrRefused) {
  EXPECT_EQ(ResolveStoreHost("10.0.0.7", 4711)->front().Text(), "10.0.0.7:4711");
  EXPECT_EQ(ResolveStoreHost("[::1]", 80)->front().Text(), "[::1]:80");
  EXPECT_FALSE(ResolveStoreHost("", 80)->front().IsLoopback());
  EXPECT_TRUE(absl::IsInvalidArgument(ResolveStoreHost("no host; no name", 80).status()));
}

}  // namespace
}  // namespace sluice
