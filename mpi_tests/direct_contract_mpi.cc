// The contract over the direct transport, each rank a process, with private and shared memory and
// with slots.
#include <utility>

#include "contract_rank_mpi.h"
#include "gtest/gtest.h"
#include "patient_fabric.h"
#include "sluice/mpi.h"
#include "transport/direct_contract.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

ContractWorld World(const char* name, size_t shared_bytes, PrivateCopies copies, bool fold) {
  return {name, [shared_bytes, copies, fold](const ContractScript& script) {
            auto fabric = PatientMpiFabric(MPI_COMM_WORLD).value();
            const absl::Status allowed = CheckDirect(fabric.get(), fold);
            if (absl::IsFailedPrecondition(allowed)) GTEST_SKIP() << allowed;
            ContractRank rank(
                std::move(fabric),
                DirectContractMemory(shared_bytes, KernelCopies::kWhereAllowed, copies));
            RunToEnd(script, &rank);
          }};
}

auto Worlds(bool fold) {
  return testing::Values(World("Private", 0, PrivateCopies::kByKernel, fold),
                         World("Slots", 0, PrivateCopies::kBySlots, fold),
                         World("Shared", size_t{8} << 20, PrivateCopies::kMeasured, fold));
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FabricContract);
INSTANTIATE_TEST_SUITE_P(Direct, TransportContract, Worlds(false), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Direct, PartContract, Worlds(false), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Direct, GroupContract, Worlds(false), ContractWorldName);
INSTANTIATE_TEST_SUITE_P(Direct, FoldContract, Worlds(true), ContractWorldName);

}  // namespace
}  // namespace sluice
