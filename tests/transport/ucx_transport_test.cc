// The contract of transports over UCX, with a thread for each rank.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "transport/transport_contract.h"
#include "transport/ucx_ranks.h"

namespace sluice {
namespace {

// UCX's own protocols differ by length: all of them eager, all of them a rendezvous, or its choice.
std::vector<ContractWorld> UcxWorlds() {
  std::vector<ContractWorld> worlds = {
      UcxThreads("Tcp2", 2, {"tcp", ""}),
      UcxThreads("TcpRendezvous3", 3, {"tcp", "1"}),
  };
  if (oracle::kSanitized) return worlds;
  worlds.push_back(UcxThreads("TcpEager2", 2, {"tcp", "inf"}));
  worlds.push_back(UcxThreads("TcpCma2", 2, {"tcp,cma", ""}));
  worlds.push_back(UcxThreads("TcpCmaRendezvous2", 2, {"tcp,cma", "1"}));
  worlds.push_back(UcxThreads("Tcp5", 5, {"tcp", ""}));
  return worlds;
}

INSTANTIATE_TEST_SUITE_P(Ucx, TransportContract, testing::ValuesIn(UcxWorlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Ucx, PartContract, testing::ValuesIn(UcxWorlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Ucx, GroupContract, testing::ValuesIn(UcxWorlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Ucx, FabricContract, testing::ValuesIn(UcxWorlds()), ContractWorldName);

}  // namespace
}  // namespace sluice
