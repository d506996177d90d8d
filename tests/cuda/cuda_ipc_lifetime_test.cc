// Sessions over CUDA IPC: no memory is freed that another rank still has open.
#include <vector>

#include "cuda/fake_world.h"
#include "fakes/fake_cuda.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/job.h"
#include "sluice/cuda.h"
#include "transport/loopback/loopback.h"

namespace sluice::session_test {
namespace {

// Two ranks on a GPU whose driver minds what is freed while it is open.
void RunRanksStrictly(const RankBody& body) {
  FakeCudaConfigure({.same_process_ipc = true});
  RunRanksOn(MakeLoopbackFabrics({0, 0}), [&](Rank& self) {
    const auto accelerator = MakeCudaAccelerator({.ordinal = 0});
    ASSERT_TRUE(accelerator.ok()) << accelerator.status();
    self.accelerator = *accelerator;
    self.transport = *MakeCudaIpcTransport(*accelerator);
    body(self);
  });
  EXPECT_THAT(FakeCudaCheckClean(), testing::IsEmpty());
}

// Each rank sends the other one what it has: as it lies, or cast on the way through its staging.
TransferSpec Swap(int64_t rows, DType dst_dtype) {
  TransferSpec spec = Ring(2, rows);
  spec.tensors[0].dst_dtype = dst_dtype;
  return spec;
}

TEST(CudaIpcLifetimeTest, TensorsMayBeFreedAfterDrop) {
  RunRanksStrictly([](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    ASSERT_NE(session, nullptr);
    for (uint64_t round = 1; round <= 3; ++round) {
      Bound bound = CompileBound(session.get(), Swap(32, DType::kF64));
      ASSERT_NE(bound.transfer, nullptr);
      RunOnce(session.get(), &bound, round);
      EXPECT_TRUE(session->Drop(bound.transfer).ok());
    }
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(CudaIpcLifetimeTest, StagingThatGrowsIsClosedBeforeItIsFreed) {
  RunRanksStrictly([](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    ASSERT_NE(session, nullptr);
    std::vector<Bound> bounds;
    for (const int64_t rows : {8, 64, 512}) {
      bounds.push_back(CompileBound(session.get(), Swap(rows, DType::kF32)));
      ASSERT_NE(bounds.back().transfer, nullptr);
      for (Bound& bound : bounds) RunOnce(session.get(), &bound, static_cast<uint64_t>(rows));
    }
    for (const Bound& bound : bounds) EXPECT_TRUE(session->Drop(bound.transfer).ok());
    bounds.clear();
    EXPECT_TRUE(session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
