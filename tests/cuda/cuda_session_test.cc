// Whole transfers in device memory, over the fake CUDA runtime and each transport, every byte
// verified; and nothing that CUDA or NCCL forbid.
#include <cstdint>
#include <string>
#include <tuple>

#include "cuda/fake_world.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_nccl.h"
#include "gmock/gmock.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

class CudaSessionTest : public testing::TestWithParam<std::tuple<FakeTransport, int>> {
 protected:
  static FakeTransport transport() { return std::get<0>(GetParam()); }
  static int size() { return std::get<1>(GetParam()); }
  // NCCL takes a GPU for each rank; others share.
  static int gpus() {
    const bool is_nccl =
        transport() == FakeTransport::kNccl || transport() == FakeTransport::kNcclRegistered;
    return is_nccl ? size() : (size() + 1) / 2;
  }
  static void Run(const RankBody& body) { RunRanksOnFakeGpus(size(), gpus(), transport(), body); }
};

TEST_P(CudaSessionTest, EveryByteIsRight) {
  for (const uint64_t seed : oracle::Seeds(60 / (size() + 3))) {
    const RandomJob job = MakeRandomJob(seed * 100 + static_cast<uint64_t>(size()), size());
    Run([&](Rank& self) { RunJob(self, job, seed); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST_P(CudaSessionTest, OneSlotIsEnough) {
  for (const TransferSpec& spec : {Ring(size(), 32), AllToAll(size(), 16 << 10)}) {
    Run([&](Rank& self) { RunThroughOneSlot(self, spec); });
    ASSERT_FALSE(HasFailure());
  }
}

TEST_P(CudaSessionTest, RunsAtOnceAndCancelledOnes) {
  for (const uint64_t seed : oracle::Seeds(24 / (size() + 3))) {
    const RandomJob job = MakeRandomJob(seed * 1000 + static_cast<uint64_t>(size()), size());
    Run([&](Rank& self) {
      RunSchedule(self, job, {.seed = seed, .cancel_percent = seed % 2 == 0 ? 40 : 0});
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

// What lies in one stretch at both ends is copied by NCCL alone; or registered staging is all that
// NCCL sees.
TEST_P(CudaSessionTest, StagesOnlyWhatItHasTo) {
  if (size() == 1) return;  // nothing is sent
  const TransferSpec spec = Ring(size(), 32);
  Run([&](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    Bound bound = CompileBound(session.get(), spec);
    RunOnce(session.get(), &bound, 1);
    const int64_t staged = session->counters().staging_bytes_peak;
    const bool goes_straight =
        transport() == FakeTransport::kNccl || transport() == FakeTransport::kCudaIpc;
    EXPECT_EQ(staged == 0, goes_straight) << staged << " bytes";
    EXPECT_TRUE(session->Close().ok());
  });
  const int64_t registered = FakeNcclRegisteredBytes();
  EXPECT_EQ(registered > 0, transport() == FakeTransport::kNcclRegistered) << registered;
}

INSTANTIATE_TEST_SUITE_P(
    Fakes, CudaSessionTest,
    testing::Combine(testing::Values(FakeTransport::kMessages, FakeTransport::kNccl,
                                     FakeTransport::kNcclRegistered, FakeTransport::kCudaIpc,
                                     FakeTransport::kCudaIpcOfPools),
                     testing::Values(1, 2, 3, 5)),
    [](const auto& test) {
      return NameOf(std::get<0>(test.param)) + std::to_string(std::get<1>(test.param));
    });

}  // namespace
}  // namespace sluice::session_test
