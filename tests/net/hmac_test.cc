// HMAC-SHA256 against published values.
#include "net/hmac.h"

#include <algorithm>
#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

std::string Text(const HmacDigest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}
std::string Hex(const HmacDigest& digest) { return absl::BytesToHexString(Text(digest)); }

// RFC 4231, cases 2 and 6.
TEST(HmacTest, GivesThePublishedDigests) {
  EXPECT_EQ(Hex(*HmacSha256("Jefe", {"what do ya want ", "for nothing?"})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(Hex(*HmacSha256(std::string(131, '\xaa'),
                            {"Test Using Larger Than Block-Size Key - Hash Key First"})),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(HmacTest, TakesNoKeyAndNoMessage) {
  EXPECT_EQ(Hex(*HmacSha256("", {})),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(HmacTest, ComparesWholeDigests) {
  const HmacDigest one = *HmacSha256("key", {"message"});
  HmacDigest other = one;
  EXPECT_TRUE(EqualDigests(Text(one), Text(other)));
  other.back() ^= std::byte{1};
  EXPECT_FALSE(EqualDigests(Text(one), Text(other)));
  EXPECT_FALSE(EqualDigests(Text(one), Text(one).substr(1)));
}

TEST(HmacTest, GivesDifferentRandomBytes) {
  EXPECT_EQ(MakeRandom(32)->size(), 32u);
  EXPECT_NE(*MakeRandom(32), *MakeRandom(32));
}

}  // namespace
}  // namespace sluice
