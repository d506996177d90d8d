// The contract over the direct transport, with a thread for each rank: their memory is one
// process's, which ThreadSanitizer sees into. mpi_tests/ has the same between processes.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "transport/direct_contract.h"
#include "transport/thread_ranks.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

RankMaker Ranks(size_t shared_bytes) {
  return [shared_bytes](std::unique_ptr<Fabric> fabric) {
    return std::make_unique<ContractRank>(std::move(fabric), DirectContractMemory(shared_bytes));
  };
}

// As where two copies through a slot are faster than one by the kernel.
RankMaker RanksWithSlots() {
  return [](std::unique_ptr<Fabric> fabric) {
    return std::make_unique<ContractRank>(
        std::move(fabric),
        DirectContractMemory(0, KernelCopies::kWhereAllowed, PrivateCopies::kBySlots));
  };
}

// As where the kernel copies nothing: every `nth_shares`-th rank has shared memory, 0 for none.
RankMaker LimitedRanks(int nth_shares) {
  return [nth_shares](std::unique_ptr<Fabric> fabric) {
    const bool shares = nth_shares > 0 && fabric->rank() % nth_shares == 0;
    return std::make_unique<ContractRank>(
        std::move(fabric),
        DirectContractMemory(shares ? size_t{8} << 20 : 0, KernelCopies::kNever));
  };
}

std::vector<ContractWorld> LimitedWorlds() {
  const auto world = [](const char* name, const std::vector<int>& node_of_rank, int nth_shares) {
    return ContractWorld{name, [node_of_rank, nth_shares](const ContractScript& script) {
                           RunOnThreads(node_of_rank, LimitedRanks(nth_shares), script);
                         }};
  };
  const ContractWorld mixed = world("Mixed", {0, 0, 0}, 2);
  if (oracle::kSanitized) return {mixed};
  return {world("Private", {0, 0, 0}, 0), world("Shared", {0, 0, 0}, 1), mixed,
          world("MixedNodes2", {0, 1, 0, 0}, 2)};
}

std::vector<ContractWorld> Worlds() {
  std::vector<ContractWorld> worlds;
  for (const int size : oracle::IsThorough() ? std::vector<int>{2, 3, 8} : std::vector<int>{2, 5}) {
    if (oracle::kSanitized && size != 3) continue;
    for (const int nodes : {1, 2}) {
      std::vector<int> node_of_rank(static_cast<size_t>(size));
      for (size_t rank = 0; rank < node_of_rank.size(); ++rank) {
        node_of_rank[rank] = static_cast<int>(rank) % nodes;
      }
      for (const size_t shared_bytes : {size_t{0}, size_t{8} << 20}) {
        worlds.push_back(
            {absl::StrCat("Ranks", size, "Nodes", nodes, shared_bytes > 0 ? "Shared" : "Private"),
             [node_of_rank, shared_bytes](const ContractScript& script) {
               RunOnThreads(node_of_rank, Ranks(shared_bytes), script);
             }});
      }
    }
  }
  worlds.push_back({"Ranks3Slots", [](const ContractScript& script) {
                      RunOnThreads({0, 0, 0}, RanksWithSlots(), script);
                    }});
  return worlds;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FabricContract);
INSTANTIATE_TEST_SUITE_P(Direct, TransportContract, testing::ValuesIn(Worlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Direct, PartContract, testing::ValuesIn(Worlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Direct, GroupContract, testing::ValuesIn(Worlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Direct, FoldContract, testing::ValuesIn(Worlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Limited, TransportContract, testing::ValuesIn(LimitedWorlds()),
                         ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Limited, PartContract, testing::ValuesIn(LimitedWorlds()),
                         ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Limited, GroupContract, testing::ValuesIn(LimitedWorlds()),
                         ContractWorldName);

}  // namespace
}  // namespace sluice
