// Sessions over CUDA IPC: what they have open of other ranks' memory, and for how long.
#include <vector>

#include "cuda/fake_world.h"
#include "fakes/fake_cuda.h"
#include "gmock/gmock.h"
#include "session/job.h"
#include "sluice/cuda.h"
#include "transport/loopback/loopback.h"

namespace sluice::session_test {
namespace {

// Two ranks on a GPU.
void RunRanksWith(FakeCudaConfig config, const CudaIpcOptions& options, const RankBody& body) {
  config.same_process_ipc = true;
  FakeCudaConfigure(config);
  RunRanksOn(MakeLoopbackFabrics({0, 0}), [&](Rank& self) {
    const auto accelerator = MakeCudaAccelerator({.ordinal = 0});
    ASSERT_TRUE(accelerator.ok()) << accelerator.status();
    self.accelerator = *accelerator;
    self.transport = *MakeCudaIpcTransport(*accelerator, options);
    body(self);
  });
}

// Their driver minds what is freed while it is open.
void RunRanksStrictly(const RankBody& body) { RunRanksWith({}, {}, body); }

// From rank 0 to rank 1.
TransferSpec Ship(int64_t rows) {
  TransferSpec spec = Ring(2, rows);
  spec.tensors[0].src = MakeLayout({1}, {0}, "R");
  spec.tensors[0].dst = MakeLayout({1}, {1}, "R");
  return spec;
}

int64_t Closes() { return FakeCudaCalls("cudaIpcCloseMemHandle"); }
int64_t OpenNow() { return FakeCudaCalls("cudaIpcOpenMemHandle") - Closes(); }

// A run of other memory than the run before had; true if it went through staging.
bool RunInNewMemory(Rank& self, Session* session, const TransferSpec& spec, Bound* bound,
                    uint64_t round) {
  if (self.rank == 0) bound->memory = RankMemory({}, 0);  // frees what it had
  if (self.rank == 0) bound->memory = RankMemory(spec, 0, {}, session->options().accelerator);
  session->ResetCounters();
  const int64_t closes = Closes();
  self.meet();
  RunOnce(session, bound, round);
  self.meet();
  EXPECT_EQ(Closes(), closes) << "round " << round;
  self.meet();  // what comes next may close
  return session->counters().staging_bytes_peak > 0;
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
    for (uint64_t round = 1; round <= 3; ++round) {
      Bound bound = CompileBound(session.get(), Swap(32, DType::kF64));
      RunOnce(session.get(), &bound, round);
      EXPECT_TRUE(session->Drop(bound.transfer).ok());
    }
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(CudaIpcLifetimeTest, StagingThatGrowsIsClosedBeforeItIsFreed) {
  RunRanksStrictly([](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    std::vector<Bound> bounds;
    for (const int64_t rows : {8, 64, 512}) {
      bounds.push_back(CompileBound(session.get(), Swap(rows, DType::kF32)));
      for (Bound& bound : bounds) RunOnce(session.get(), &bound, static_cast<uint64_t>(rows));
    }
    for (const Bound& bound : bounds) EXPECT_TRUE(session->Drop(bound.transfer).ok());
    bounds.clear();
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(CudaIpcLifetimeTest, RunsCloseNothingThoughMemoryIsFreedAndHadAgain) {
  RunRanksWith({.free_while_open = true, .reuse_addresses = true}, {}, [](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    const TransferSpec spec = Ship(64);
    Bound bound = CompileBound(session.get(), spec);
    // What lies where memory is open that was freed goes another way, and so what follows it.
    EXPECT_FALSE(RunInNewMemory(self, session.get(), spec, &bound, 1));
    for (uint64_t round = 2; round <= 4; ++round) {
      EXPECT_EQ(RunInNewMemory(self, session.get(), spec, &bound, round), self.rank == 0);
    }
    EXPECT_EQ(OpenNow(), 2);  // the memory of the first run, and staging
    self.meet();
    // From then on it can be opened again, be it new or not.
    Bound other = CompileBound(session.get(), Ship(8));
    self.meet();
    EXPECT_EQ(OpenNow(), 0);
    session->ResetCounters();
    RunOnce(session.get(), &bound, 5);
    EXPECT_EQ(session->counters().staging_bytes_peak, 0);
    for (Transfer* const transfer : {bound.transfer, other.transfer}) {
      EXPECT_TRUE(session->Drop(transfer).ok());
    }
    self.meet();
    EXPECT_EQ(OpenNow(), 0);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(CudaIpcLifetimeTest, NoMoreStaysOpenOfWhatWasFreedThanAllowed) {
  const TransferSpec spec = Ship(64);
  constexpr int64_t kBytes = 2 * 64 * 1024 * 8;
  RunRanksWith({.free_while_open = true}, {.open_bytes_max = 7 * kBytes / 2}, [&](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    Bound bound = CompileBound(session.get(), spec);
    for (uint64_t round = 1; round <= 8; ++round) {
      const bool is_staged = RunInNewMemory(self, session.get(), spec, &bound, round);
      EXPECT_EQ(is_staged, self.rank == 0 && round > 4) << "round " << round;
    }
    EXPECT_TRUE(session->Drop(bound.transfer).ok());
    self.meet();
    EXPECT_EQ(OpenNow(), 0);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(CudaIpcLifetimeTest, NothingStaysOpenOverManyTransfers) {
  RunRanksWith({.reuse_addresses = true}, {}, [](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    for (uint64_t cycle = 1; cycle <= 100; ++cycle) {
      const int64_t rows = 1 + static_cast<int64_t>(cycle * 7 % 20);
      Bound bound =
          CompileBound(session.get(), Swap(rows, cycle % 2 == 0 ? DType::kF64 : DType::kF32));
      RunOnce(session.get(), &bound, cycle);
      EXPECT_TRUE(session->Drop(bound.transfer).ok());
    }
    self.meet();
    EXPECT_EQ(OpenNow(), 0);
    EXPECT_TRUE(session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
