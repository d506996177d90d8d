// The bytes by which workers of UCX are found.
#include "transport/ucx/ucx_address.h"

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

const char kBytes[] = "what\0UCX packs";
const std::string kPacked(kBytes, sizeof(kBytes));

TEST(UcxAddressTest, ComesBackAsItWas) {
  const auto address = UnpackUcxAddress(PackUcxAddress({0x123456789abcdef0u, kPacked}));
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->token, 0x123456789abcdef0u);
  EXPECT_EQ(address->ucx, kPacked);
}

TEST(UcxAddressTest, RefusesWhatHasBeenDamaged) {
  const std::string bytes = PackUcxAddress({7, kPacked});
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_TRUE(absl::IsInvalidArgument(UnpackUcxAddress(damaged).status())) << at;
    EXPECT_TRUE(absl::IsInvalidArgument(UnpackUcxAddress(bytes.substr(0, at)).status())) << at;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(UnpackUcxAddress(bytes + "more").status()));
}

}  // namespace
}  // namespace sluice
