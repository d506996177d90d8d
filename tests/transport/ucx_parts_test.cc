// The bytes by which workers of UCX are found, and which of its transports a worker gets.
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "transport/ucx/ucx_address.h"
#include "transport/ucx/ucx_networks.h"

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

std::string Chosen(const char* transports, const char* devices, UcxTcp tcp) {
  const auto networks = ChooseUcxNetworks(transports, devices, tcp);
  if (!networks.ok()) return absl::IsUnavailable(networks.status()) ? "none" : "another error";
  return (networks->tcp ? "tcp " : "") + networks->transports + " on " + networks->devices;
}

TEST(UcxNetworksTest, TcpIsTakenWhereItIsAskedForTwice) {
  for (const char* named : {"tcp", "rc,tcp", "\\tcp", "tcp:aux,rc", "all, tcp"}) {
    EXPECT_EQ(Chosen(named, "", UcxTcp::kIfNamed), "tcp  on lo");
    EXPECT_EQ(Chosen(named, "all", UcxTcp::kIfNamed), "tcp  on lo");
    EXPECT_EQ(Chosen(named, "eth0", UcxTcp::kIfNamed), "tcp  on ");
  }
}

TEST(UcxNetworksTest, OtherwiseItIsLeftOut) {
  for (const UcxTcp tcp : {UcxTcp::kNever, UcxTcp::kIfNamed}) {
    EXPECT_EQ(Chosen("", "", tcp), "^tcp on ");
    EXPECT_EQ(Chosen("all", "eth0", tcp), "^tcp on ");
    EXPECT_EQ(Chosen("^ud", "", tcp), "^ud,tcp on ");
    EXPECT_EQ(Chosen("rc,sm", "", tcp), "rc,sm on ");
  }
  EXPECT_EQ(Chosen("rc,tcp,\\tcp", "mlx5_0:1", UcxTcp::kNever), "rc on ");
  EXPECT_EQ(Chosen("all,tcp", "", UcxTcp::kNever), "^tcp on ");
  EXPECT_EQ(Chosen("tcp", "", UcxTcp::kNever), "none");
}

}  // namespace
}  // namespace sluice
