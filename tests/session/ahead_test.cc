// Ranks that are far ahead of others, runs that end out of order, and cancels at random.
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "session/late_run.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

constexpr int64_t kMaxAhead = 2 * Session::kMaxRunsInFlight;

// Of ranks 1 and 2 alone.
TransferSpec WithoutRank0() { return FromTo(1, 2, {100}); }

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
    EXPECT_EQ(run->Wait(), absl::OkStatus());
  }
  return newest;
}

TEST(AheadTest, RunsEndOnlyOnceAllRanksHaveComeNear) {
  RunSessions(3, Options(absl::Seconds(100)), [](Rank& self, Session* session) {
    Bound bound = CompileBound(session, WithoutRank0());
    bound.memory.Prepare(1);
    const int64_t near = Session::kMaxRunsInFlight;
    Go(session, &bound, 1, 1, 1);  // views have been compared
    self.meet();
    if (self.rank == 0) {
      // Nothing to do here, and nobody else is there.
      const auto ahead = Go(session, &bound, 2, kMaxAhead, kMaxAhead - 1);
      for (int i = 0; i < 1000; ++i) ASSERT_TRUE(session->Poll().ok());
      EXPECT_FALSE(ahead.IsDone());
      self.meet();
      EXPECT_TRUE(ahead.Wait().ok());
      self.meet();
    } else {
      self.meet();
      Go(session, &bound, 2, near, near);
      self.meet();  // rank 0 has gone on although no other rank has come further
      Go(session, &bound, near + 1, kMaxAhead, kMaxAhead);
    }
    Go(session, &bound, kMaxAhead + 1, 5 * kMaxAhead, 5 * kMaxAhead);
    EXPECT_EQ(bound.memory.Check(1), "");
  });
}

TEST(AheadTest, WhoIsBehindIsNamedByWhoWaits) {
  RunRanks(3, [](Rank& self) {
    const auto session = OpenSession(self, Options(absl::Seconds(2)));
    Bound bound = CompileBound(session.get(), WithoutRank0());
    bound.memory.Prepare(1);
    Go(session.get(), &bound, 1, 1, 1);
    self.meet();
    if (self.rank == 0) {
      Go(session.get(), &bound, 2, kMaxAhead - 1, kMaxAhead - 1);
      // It need not be there as long as it does not go on, however long that takes.
      const auto begin = absl::Now();
      while (absl::Now() - begin < absl::Milliseconds(2500)) ASSERT_TRUE(session->Poll().ok());
      const absl::Status status = Go(session.get(), &bound, kMaxAhead, kMaxAhead, 0).Wait();
      EXPECT_THAT(status, Fails(absl::StatusCode::kDeadlineExceeded,
                                SaysOf(1, "has not started run 16: the last it has started is 1")));
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
    Bound bound = CompileBound(session.get(), WithoutRank0());
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

class CancelRandomTest : public testing::TestWithParam<int> {};

TEST_P(CancelRandomTest, EveryTensorThatIsReportedIsRight) {
  const int size = GetParam();
  int cancelled = 0;
  // Threads decide whether a cancel comes in time: there are more tries for as long as none did.
  for (size_t tried = 0; tried < oracle::Seeds(40).size() || (cancelled == 0 && tried < 500);
       ++tried) {
    const uint64_t seed = oracle::FirstSeed() + tried;
    const RandomJob job = MakeRandomJob(seed * 100 + static_cast<uint64_t>(size) + 50, size);
    std::vector<int> of_rank(static_cast<size_t>(size));
    RunRanks(size, [&](Rank& self) {
      of_rank[static_cast<size_t>(self.rank)] = RunCancelled(self, job, seed);
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " with " << size << " ranks";
    for (const int each : of_rank) cancelled += each;
  }
  EXPECT_GT(cancelled, 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, CancelRandomTest, testing::Values(2, 3, 5),
                         testing::PrintToStringParamName());

// So late that a test which comes to it fails.
SessionOptions Patient() { return {.bucket_bytes = 1024, .timeout = absl::Seconds(24)}; }

// Three transfers among `size` ranks; the last one has other ranks and another class.
std::vector<Bound> CompileThree(Session* session, int size) {
  TransferSpec other = Ring(size, 8);
  other.priority_class = 2;
  std::vector<Bound> bounds;
  for (const TransferSpec& spec : {Ring(size, 8), AllToAll(size, 4096), other}) {
    bounds.push_back(CompileBound(session, spec));
    EXPECT_NE(bounds.back().transfer, nullptr);
  }
  return bounds;
}

// Starts transfers in the order that `order` gives, and expects the error that names `text`.
void ExpectTold(Rank& self, Session* session, std::vector<Bound>* bounds,
                const std::vector<size_t>& order, const std::string& text) {
  absl::Status status;
  for (const size_t t : order) {
    Bound& bound = (*bounds)[t];
    bound.memory.Prepare(2);
    const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst());
    status.Update(run.status());
  }
  while (status.ok()) status = session->Poll();
  EXPECT_THAT(status,
              Fails(absl::StatusCode::kFailedPrecondition,
                    testing::AllOf(testing::HasSubstr(text), testing::HasSubstr(" on rank 1"))));
  self.meet();
}

TEST(OrderTest, TwoTransfersThatHaveRunBefore) {
  for (const size_t second : {size_t{1}, size_t{2}}) {
    RunRanks(3, [second](Rank& self) {
      const auto session = OpenSession(self, Patient());
      std::vector<Bound> bounds = CompileThree(session.get(), 3);
      for (Bound& bound : bounds) RunOnce(session.get(), &bound, 1);
      const std::vector<size_t> order =
          self.rank == 1 ? std::vector<size_t>{second, 0} : std::vector<size_t>{0, second};
      ExpectTold(self, session.get(), &bounds, order, "run 4 is transfer");
    });
  }
}

TEST(OrderTest, AFirstRunAgainstALaterOne) {
  for (const size_t unknown : {size_t{1}, size_t{2}}) {
    RunRanks(3, [unknown](Rank& self) {
      const auto session = OpenSession(self, Patient());
      std::vector<Bound> bounds = CompileThree(session.get(), 3);
      RunOnce(session.get(), &bounds[0], 1);
      ExpectTold(self, session.get(), &bounds, {self.rank == 1 ? unknown : 0}, "run 2 is transfer");
    });
  }
}

TEST(OrderTest, AFirstRunAgainstOneThatIsDoneAlready) {
  RunRanks(3, [](Rank& self) {
    const auto session = OpenSession(self, Patient());
    std::vector<Bound> bounds;
    bounds.push_back(CompileBound(session.get(), FromTo(0, 2)));  // rank 1 has no part in it
    bounds.push_back(CompileBound(session.get(), AllToAll(3, 4096)));
    RunOnce(session.get(), &bounds[0], 1);
    const size_t mine = self.rank == 1 ? 1 : 0;
    ExpectTold(self, session.get(), &bounds, {mine}, "transfer 1 on rank 1");
  });
}

}  // namespace
}  // namespace sluice::session_test
