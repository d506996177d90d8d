// How far a rank can get ahead of the others, whatever it has to do.
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/job.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

using testing::HasSubstr;

constexpr int64_t kMaxAhead = 2 * Session::kMaxRunsInFlight;

// Of ranks 1 and 2 alone.
TransferSpec WithoutRank0() {
  TransferSpec spec = Ring(2, 1);
  spec.tensors[0].src = MakeLayout({1}, {1}, "R");
  spec.tensors[0].dst = MakeLayout({1}, {2}, "R");
  spec.tensors[0].shape = {100};
  return spec;
}

SessionOptions Options(absl::Duration timeout) {
  SessionOptions options;
  options.bucket_bytes = 1024;
  options.timeout = options.patience = timeout;
  return options;
}

// Starts runs until `last`, and waits for all of them but those that come after `done`. Returns the
// last one.
Run Go(Session* session, Bound* bound, int64_t first, int64_t last, int64_t done) {
  Run newest;
  for (int64_t number = first; number <= last; ++number) {
    const auto run = session->Start(bound->transfer, bound->memory.src(), bound->memory.dst());
    EXPECT_TRUE(run.ok()) << run.status();
    if (!run.ok()) return newest;
    newest = *run;
    EXPECT_EQ(run->number(), number);
    if (number > done) continue;
    const absl::Status status = run->Wait();
    EXPECT_TRUE(status.ok()) << status;
  }
  return newest;
}

TEST(AheadTest, RunsEndOnlyOnceAllRanksHaveComeNear) {
  RunRanks(3, [](Rank& self) {
    const auto session = OpenSession(self, Options(absl::Seconds(100)));
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), WithoutRank0());
    ASSERT_NE(bound.transfer, nullptr);
    bound.memory.Prepare(1);
    const int64_t near = Session::kMaxRunsInFlight;
    Go(session.get(), &bound, 1, 1, 1);  // views have been compared
    self.meet();
    if (self.rank == 0) {
      // Nothing to do here, and nobody else is there.
      const auto ahead = Go(session.get(), &bound, 2, kMaxAhead, kMaxAhead - 1);
      for (int i = 0; i < 1000; ++i) ASSERT_TRUE(session->Poll().ok());
      EXPECT_FALSE(ahead.IsDone());
      self.meet();
      EXPECT_TRUE(ahead.Wait().ok());
      self.meet();
    } else {
      self.meet();
      Go(session.get(), &bound, 2, near, near);
      self.meet();  // rank 0 has gone on although no other rank has come further
      Go(session.get(), &bound, near + 1, kMaxAhead, kMaxAhead);
    }
    Go(session.get(), &bound, kMaxAhead + 1, 5 * kMaxAhead, 5 * kMaxAhead);
    EXPECT_EQ(bound.memory.Check(1), "");
    const absl::Status closed = session->Close();
    EXPECT_TRUE(closed.ok()) << closed;
  });
}

TEST(AheadTest, WhoIsBehindIsNamedByWhoWaits) {
  RunRanks(3, [](Rank& self) {
    const auto session = OpenSession(self, Options(absl::Seconds(2)));
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), WithoutRank0());
    ASSERT_NE(bound.transfer, nullptr);
    bound.memory.Prepare(1);
    Go(session.get(), &bound, 1, 1, 1);
    self.meet();
    if (self.rank == 0) {
      Go(session.get(), &bound, 2, kMaxAhead - 1, kMaxAhead - 1);
      // It need not be there as long as it does not go on, however long that takes.
      const auto begin = absl::Now();
      while (absl::Now() - begin < absl::Milliseconds(2500)) ASSERT_TRUE(session->Poll().ok());
      const absl::Status status = Go(session.get(), &bound, kMaxAhead, kMaxAhead, 0).Wait();
      EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("rank 1 has not started run 16: the last it has started is 1"));
    }
    if (self.rank == 1) {
      while (session->Poll().ok()) std::this_thread::yield();
    }
    self.meet();
  });
}

TEST(AheadTest, ClosingDoesNotWaitForWhoIsBehind) {
  RunRanks(3, [](Rank& self) {
    const auto session = OpenSession(self, Options(absl::Seconds(100)));
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), WithoutRank0());
    ASSERT_NE(bound.transfer, nullptr);
    bound.memory.Prepare(1);
    Go(session.get(), &bound, 1, 1, 1);
    self.meet();
    const int64_t last = kMaxAhead - 1;
    if (self.rank == 0) {
      Go(session.get(), &bound, 2, last, last);
      EXPECT_TRUE(session->Close().ok());
    }
    self.meet();
    if (self.rank != 0) {
      Go(session.get(), &bound, 2, last, last);
      EXPECT_TRUE(session->Close().ok());
    }
    self.meet();
  });
}

}  // namespace
}  // namespace sluice::session_test
