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
  return {.bucket_bytes = 1024, .timeout = kTimeout, .progress_thread = progress_thread};
}

TEST(WaitForTest, MayBeGivenUpAndTakenUpAgain) {
  for (const bool progress_thread : {false, true}) {
    std::atomic<bool> given_up = false;
    RunSessions(2, Options(progress_thread), [&](Rank& self, Session* session) {
      Bound bound = CompileBound(session, AllToAll(2, 8192));
      Bound other = CompileBound(session, AllToAll(2, 4096));
      RunOnce(session, &bound, 1);
      while (self.rank == 1 && !given_up) {
        EXPECT_TRUE(session->Poll().ok()) << "rank 0 waits for as long as this rank answers";
        std::this_thread::yield();
      }
      const auto run = StartRun(session, &bound, 2);
      const sluice::Run behind = StartRun(session, &other, 3);
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
      const auto over = run.WaitFor(absl::InfiniteDuration()).value();
      EXPECT_TRUE(over);
      EXPECT_EQ(bound.memory.Check(2), "");
      EXPECT_TRUE(run.WaitFor(absl::ZeroDuration()).value_or(false)) << "it is over";
      EXPECT_TRUE(behind.Wait().ok());
      EXPECT_EQ(other.memory.Check(3), "");
    });
  }
}

TEST(WaitForTest, ReturnsTheErrorOfWait) {
  EXPECT_TRUE(absl::IsInvalidArgument(sluice::Run().WaitFor(absl::ZeroDuration()).status()));
  for (const bool progress_thread : {false, true}) {
    RunRanks(2, [progress_thread](Rank& self) {
      const auto session = OpenSession(self, Options(progress_thread));
      Bound bound = CompileBound(session.get(), AllToAll(2, 8192));
      bound.memory.Prepare(1);
      std::vector<TensorView> dst = bound.memory.dst();
      dst[0].data = nullptr;
      const auto run =
          session->Start(bound.transfer, bound.memory.src(), dst, {.late_destinations = true})
              .value();
      EXPECT_TRUE(run.Cancel().ok());
      const auto over = run.WaitFor(absl::InfiniteDuration());
      EXPECT_TRUE(absl::IsCancelled(over.status())) << over.status();
      EXPECT_EQ(run.Wait(), over.status());
      self.meet();
    });
  }
}

}  // namespace
}  // namespace sluice::session_test
