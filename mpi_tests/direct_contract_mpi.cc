// The contract over the direct transport, each rank a process, with private and shared memory.
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "sluice/mpi.h"
#include "transport/direct_contract.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

// A rank that is stuck would hold up all others in the next test, so it ends the program.
void Abort(const ContractRank& rank) {
  std::fprintf(stderr, "stuck: %s\n", rank.Position().c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

ContractWorld World(const char* name, size_t shared_bytes, bool fold) {
  return {name, [shared_bytes, fold](const ContractScript& script) {
            absl::StatusOr<std::unique_ptr<Fabric>> fabric = MakeMpiFabric(MPI_COMM_WORLD);
            ASSERT_TRUE(fabric.ok()) << fabric.status();
            const absl::Status allowed = CheckDirect(fabric->get(), fold);
            if (absl::IsFailedPrecondition(allowed)) GTEST_SKIP() << allowed;
            ContractRank rank(*std::move(fabric), DirectContractMemory(shared_bytes));
            script(rank);
            const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(100);
            while (rank.Advance()) {
              if (std::chrono::steady_clock::now() > deadline) Abort(rank);
              std::this_thread::yield();
            }
            rank.CheckEnd();
          }};
}

auto Worlds(bool fold) {
  return testing::Values(World("Private", 0, fold), World("Shared", size_t{8} << 20, fold));
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FabricContract);
INSTANTIATE_TEST_SUITE_P(Direct, TransportContract, Worlds(false), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Direct, PartContract, Worlds(false), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Direct, GroupContract, Worlds(false), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Direct, FoldContract, Worlds(true), ContractWorldName);

}  // namespace
}  // namespace sluice
