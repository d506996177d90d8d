// The contract of transports and fabrics over TCP links, with a thread for each rank.
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "transport/tcp_ranks.h"
#include "transport/thread_ranks.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

constexpr std::chrono::seconds kPatience{400};

void RunOnTcp(int size, bool connected, const ContractScript& script) {
  std::vector<std::shared_ptr<TcpLinks>> links = MakeTcpLinks(size);
  if (connected) ConnectAll(links);
  std::vector<std::unique_ptr<Fabric>> fabrics = MakeTcpFabrics(links);
  links.clear();
  RunFabricsOnThreads(std::move(fabrics), MakeHostRank, script, kPatience);
}

std::vector<ContractWorld> Worlds(bool connected, const std::vector<int>& sizes) {
  std::vector<ContractWorld> worlds;
  for (const int size : sizes) {
    if (oracle::kSanitized && size > 3) break;
    worlds.push_back({absl::StrCat(connected ? "Connected" : "OnDemand", size),
                      [=](const ContractScript& script) { RunOnTcp(size, connected, script); }});
  }
  return worlds;
}

std::vector<ContractWorld> AllWorlds() {
  std::vector<ContractWorld> worlds = Worlds(false, {2, 3, 5});
  for (const ContractWorld& world : Worlds(true, {2})) worlds.push_back(world);
  return worlds;
}

INSTANTIATE_TEST_SUITE_P(Tcp, TransportContract, testing::ValuesIn(AllWorlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Tcp, PartContract, testing::ValuesIn(AllWorlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Tcp, GroupContract, testing::ValuesIn(AllWorlds()), ContractWorldName);
// A rank that posts and calls nothing any more is heard where it is connected.
INSTANTIATE_TEST_SUITE_P(Tcp, FabricContract, testing::ValuesIn(Worlds(true, {2, 3, 5})),
                         ContractWorldName);

}  // namespace
}  // namespace sluice
