// Which of UCX's transports a worker gets.
#include "transport/ucx/ucx_networks.h"

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

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
