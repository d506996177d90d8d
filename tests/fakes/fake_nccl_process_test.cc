// The fake NCCL between processes: the same as between threads, also when one of them dies.
#include <signal.h>

#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "fakes/child_process.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "fakes/fake_nccl.h"
#include "fakes/fake_nccl_rig.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

constexpr int kRanks = 3;
constexpr size_t kBytes = 300000;
constexpr int kNobody = -1;

struct Job {
  ncclUniqueId id;
  int rank;
  int dies;  // the rank that does not live to see the exchange
};

void Exchange(const NcclRank& self, const FilledMemory& out, const FilledMemory& in) {
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(self.Send(out.data(), kBytes, (self.rank() + 1) % kRanks), ncclSuccess);
  EXPECT_EQ(self.Receive(in.data(), kBytes, (self.rank() + 2) % kRanks), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
}

void RunRank(const Job& job) {
  FakeCudaConfigure({.devices = kRanks});
  ASSERT_EQ(cudaSetDevice(job.rank), cudaSuccess);
  {
    NcclRank self(job.id, job.rank, kRanks);
    const FilledMemory out(kBytes, job.rank);
    const FilledMemory in(kBytes, 255);
    Exchange(self, out, in);
    EXPECT_EQ(cudaStreamSynchronize(self.stream()), cudaSuccess);
    EXPECT_TRUE(in.IsAll((job.rank + 2) % kRanks));
    if (job.dies != kNobody) {
      if (job.dies == job.rank) raise(SIGKILL);
      Exchange(self, out, in);
      while (!FakeNcclIsGone(self.comm(), job.dies)) std::this_thread::yield();
      // Longer than the timeout: a dead rank is no misuse of the others'.
      FakeNcclSetTimeout(50);
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      EXPECT_EQ(cudaStreamQuery(self.stream()), cudaErrorNotReady);
      self.Abort();
    }
  }
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

// A process of its own, below.
TEST(DISABLED_Child, IsARank) { RunRank(FromParent<Job>().value()); }

void RunProcesses(int dies) {
  Job job = {.id = {}, .rank = 0, .dies = dies};
  ASSERT_EQ(ncclGetUniqueId(&job.id), ncclSuccess);
  std::vector<std::future<int>> children;
  for (int rank = 1; rank < kRanks; ++rank) {
    Job child = job;
    child.rank = rank;
    children.push_back(
        std::async(std::launch::async, [=] { return RunChild("DISABLED_Child.IsARank", child); }));
  }
  RunRank(job);
  for (int rank = 1; rank < kRanks; ++rank) {
    EXPECT_EQ(children[static_cast<size_t>(rank - 1)].get() == 0, rank != dies) << rank;
  }
}

TEST(FakeNcclProcessTest, RanksAreProcesses) { RunProcesses(kNobody); }

TEST(FakeNcclProcessTest, OthersWaitForOneThatDiedUntilTheyAbort) { RunProcesses(2); }

}  // namespace
}  // namespace sluice
