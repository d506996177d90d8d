// The contract of groups over NCCL on a GPU, with one rank that sends to itself.
#include <nccl.h>

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "sluice/nccl.h"
#include "transport/cuda_contract.h"
#include "transport/thread_ranks.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

void RunOneRank(const ContractScript& script) {
  const auto make = [](std::unique_ptr<Fabric> fabric) {
    return std::make_unique<ContractRank>(std::move(fabric),
                                          CudaContractMemory(0, *MakeNcclTransport(nullptr)));
  };
  RunOnThreads({0}, make, script);
}

INSTANTIATE_TEST_SUITE_P(Nccl, GroupContract, testing::Values(ContractWorld{"OneRank", RunOneRank}),
                         ContractWorldName);

TEST(NcclGpuTest, OpensAndEndsAgainAndAgain) {
  for (int i = 0; i < 3; ++i) {
    const std::vector<absl::Status> outcomes =
        CudaJob(1, [](int) { return CudaContractMemory(0, *MakeNcclTransport(nullptr)); }).Run();
    EXPECT_TRUE(outcomes[0].ok()) << outcomes[0];
  }
}

TEST(NcclGpuTest, RefusesTwoRanksOnTheGpu) {
  int version = 0;
  ASSERT_EQ(ncclGetVersion(&version), ncclSuccess);
  if (version >= NCCL_VERSION(2, 30, 0)) GTEST_SKIP() << "NCCL " << version << " decides itself";
  for (const absl::Status& status :
       OpenOnGpus({0, 0}, {0, 0}, [] { return *MakeNcclTransport(nullptr); })) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  }
}

}  // namespace
}  // namespace sluice
