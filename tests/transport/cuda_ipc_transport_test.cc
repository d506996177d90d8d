// The contract over CUDA IPC on the fake runtime, ranks as threads and one thread for all of them;
// and what this transport alone does: handles, freed memory, errors at every call.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fakes/fake_cuda.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "sluice/cuda.h"
#include "transport/cuda_contract.h"
#include "transport/thread_ranks.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

using testing::HasSubstr;

// Ranks are threads, which share no GPU's memory otherwise.
void Configure(int devices) {
  FakeCudaConfigure({.devices = devices, .same_process_ipc = true, .delay_us = 50, .seed = 7});
}

std::shared_ptr<TransportMaker> Maker() { return *MakeCudaIpcTransport(nullptr); }

// Ranks in turn on `devices` GPUs.
RankMaker RanksOn(int devices) {
  return [devices](std::unique_ptr<Fabric> fabric) {
    const int ordinal = fabric->rank() % devices;
    return std::make_unique<ContractRank>(std::move(fabric), CudaContractMemory(ordinal, Maker()));
  };
}

std::vector<ContractWorld> Worlds() {
  std::vector<ContractWorld> worlds;
  for (const int size : {2, 3, 5, 8}) {
    if (oracle::kSanitized && size > 3) break;
    for (const int devices : {1, 3}) {
      worlds.push_back({absl::StrCat("Ranks", size, "Gpus", devices),
                        [size, devices](const ContractScript& script) {
                          Configure(devices);
                          RunOnThreads(std::vector<int>(static_cast<size_t>(size), 0),
                                       RanksOn(devices), script);
                        }});
    }
  }
  return worlds;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FabricContract);
INSTANTIATE_TEST_SUITE_P(CudaIpc, TransportContract, testing::ValuesIn(Worlds()),
                         ContractWorldName);
INSTANTIATE_TEST_SUITE_P(CudaIpc, GroupContract, testing::ValuesIn(Worlds()), ContractWorldName);

}  // namespace
}  // namespace sluice
