// The contracts of fabrics and transports over worlds, with a thread for each rank.
#include <chrono>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "transport/thread_ranks.h"
#include "transport/transport_contract.h"
#include "world/members.h"

namespace sluice {
namespace {

constexpr std::chrono::seconds kPatience{180};

std::vector<ContractWorld> Worlds() {
  std::vector<ContractWorld> worlds;
  for (const int size : {2, 3, 5}) {
    if (oracle::kSanitized && size > 3) break;
    worlds.push_back({absl::StrCat("Tcp", size), [size](const ContractScript& script) {
                        RunFabricsOnThreads(world_test::WorldFabrics(size, "tcp"), MakeHostRank,
                                            script, kPatience);
                      }});
  }
  return worlds;
}

// Messages match by tags, and do not meet in groups.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GroupContract);
INSTANTIATE_TEST_SUITE_P(World, TransportContract, testing::ValuesIn(Worlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(World, PartContract, testing::ValuesIn(Worlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(World, FabricContract, testing::ValuesIn(Worlds()), ContractWorldName);

}  // namespace
}  // namespace sluice
