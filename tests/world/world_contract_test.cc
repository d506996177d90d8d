// The contracts of fabrics and transports over worlds, with a thread for each rank.
#include <barrier>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "transport/contract_rank.h"
#include "transport/transport_contract.h"
#include "world/members.h"

namespace sluice {
namespace {

constexpr std::chrono::seconds kPatience{180};

void RunOne(ContractRank* rank, const ContractScript& script) {
  script(*rank);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (rank->Advance()) {
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "stuck: " << rank->Position();
      return;
    }
    std::this_thread::yield();
  }
  rank->CheckEnd();
}

void RunOver(std::vector<std::unique_ptr<Fabric>> fabrics, const ContractScript& script) {
  const int size = static_cast<int>(fabrics.size());
  std::barrier all_have_ended(size);
  world_test::OnThreads(size, [&](int i) {
    ContractRank rank(std::move(fabrics[static_cast<size_t>(i)]));
    RunOne(&rank, script);
    rank.DestroyTransports();
    all_have_ended.arrive_and_wait();
  });
}

std::vector<ContractWorld> Worlds() {
  std::vector<ContractWorld> worlds;
  for (const int size : {2, 3, 5}) {
    if (oracle::kSanitized && size > 3) break;
    worlds.push_back({absl::StrCat("Tcp", size), [size](const ContractScript& script) {
                        RunOver(world_test::WorldFabrics(size, "tcp"), script);
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
