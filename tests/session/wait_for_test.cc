// Waits that are given up after a while, and taken up again.
#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(2);

SessionOptions Options(bool progress_thread) {
  SessionOptions options;
  options.bucket_bytes = 1024;
  options.timeout = kTimeout;
  options.progress_thread = progress_thread;
  return options;
}

Run StartRun(Session* session, Bound* bound, uint64_t round) {
  bound->memory.Prepare(round);
  const auto run = session->Start(bound->transfer, bound->memory.src(), bound->memory.dst());
  EXPECT_TRUE(run.ok()) << run.status();
  return run.value_or(Run());
}

TEST(WaitForTest, MayBeGivenUpAndTakenUpAgain) {
  for (const bool progress_thread : {false, true}) {
    std::atomic<bool> given_up = false;
    RunRanks(2, [&](Rank& self) {
      const auto session = OpenSession(self, Options(progress_thread));
      ASSERT_NE(session, nullptr);
      Bound bound = CompileBound(session.get(), AllToAll(2, 8192));
      Bound other = CompileBound(session.get(), AllToAll(2, 4096));
      ASSERT_NE(other.transfer, nullptr);
      RunOnce(session.get(), &bound, 1);
      while (self.rank == 1 && !given_up) {
        EXPECT_TRUE(session->Poll().ok()) << "rank 0 waits for as long as this rank answers";
        std::this_thread::yield();
      }
      const sluice::Run run = StartRun(session.get(), &bound, 2);
      const sluice::Run behind = StartRun(session.get(), &other, 3);
      if (self.rank == 0) {
        for (const absl::Duration limit : {absl::Milliseconds(20), absl::ZeroDuration(),
                                           -absl::InfiniteDuration(), kTimeout * 3 / 2}) {
          const auto over = run.WaitFor(limit);
          EXPECT_TRUE(over.ok()) << over.status();
          EXPECT_FALSE(over.value_or(true)) << "rank 1 has not started it";
          EXPECT_FALSE(run.IsDone());
        }
        EXPECT_FALSE(behind.WaitFor(absl::Milliseconds(1)).value_or(true));
        given_up = true;
      }
      const auto over = run.WaitFor(absl::InfiniteDuration());
      ASSERT_TRUE(over.ok()) << over.status();
      EXPECT_TRUE(*over);
      EXPECT_EQ(bound.memory.Check(2), "");
      EXPECT_TRUE(run.WaitFor(absl::ZeroDuration()).value_or(false)) << "it is over";
      EXPECT_TRUE(behind.Wait().ok());
      EXPECT_EQ(other.memory.Check(3), "");
      EXPECT_TRUE(session->Close().ok());
    });
  }
}

TEST(WaitForTest, ReturnsTheErrorOfWait) {
  EXPECT_TRUE(absl::IsInvalidArgument(sluice::Run().WaitFor(absl::ZeroDuration()).status()));
  for (const bool progress_thread : {false, true}) {
    RunRanks(2, [progress_thread](Rank& self) {
      const auto session = OpenSession(self, Options(progress_thread));
      ASSERT_NE(session, nullptr);
      Bound bound = CompileBound(session.get(), AllToAll(2, 8192));
      ASSERT_NE(bound.transfer, nullptr);
      bound.memory.Prepare(1);
      std::vector<TensorView> dst = bound.memory.dst();
      dst[0].data = nullptr;
      StartOptions late;
      late.late_destinations = true;
      const auto run = session->Start(bound.transfer, bound.memory.src(), dst, late);
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_TRUE(run->Cancel().ok());
      const auto over = run->WaitFor(absl::InfiniteDuration());
      EXPECT_TRUE(absl::IsCancelled(over.status())) << over.status();
      EXPECT_EQ(run->Wait(), over.status());
      self.meet();
    });
  }
}

}  // namespace
}  // namespace sluice::session_test
