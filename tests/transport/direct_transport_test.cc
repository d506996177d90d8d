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

std::vector<ContractWorld> Worlds() {
  std::vector<ContractWorld> worlds;
  for (const int size : {2, 3, 8}) {
    if (oracle::kSanitized && size != 3) continue;
    for (const int nodes : {1, 2}) {
      std::vector<int> node_of_rank;
      for (int rank = 0; rank < size; ++rank) node_of_rank.push_back(rank % nodes);
      for (const size_t shared_bytes : {size_t{0}, size_t{64} << 20}) {
        worlds.push_back(
            {absl::StrCat("Ranks", size, "Nodes", nodes, shared_bytes > 0 ? "Shared" : "Private"),
             [node_of_rank, shared_bytes](const ContractScript& script) {
               RunOnThreads(node_of_rank, Ranks(shared_bytes), script);
             }});
      }
    }
  }
  return worlds;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FabricContract);
INSTANTIATE_TEST_SUITE_P(Direct, TransportContract, testing::ValuesIn(Worlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Direct, GroupContract, testing::ValuesIn(Worlds()), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Direct, FoldContract, testing::ValuesIn(Worlds()), ContractWorldName);

}  // namespace
}  // namespace sluice
