// Ranks that are late and answer are waited for; ranks that are silent, or wait in a circle, are
// not.
#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/base/backoff.h"
#include "session/job.h"
#include "session/launch.h"
#include "sluice/connect.h"
#include "transport/deadline.h"
#include "transport/say_once.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(2);
constexpr absl::Duration kLate = absl::Seconds(3);

SessionOptions Options(bool progress_thread = false) {
  return {.bucket_bytes = 1024, .timeout = kTimeout, .progress_thread = progress_thread};
}

SessionOptions Impatient(absl::Duration patience) {
  SessionOptions options = Options();
  options.patience = patience;
  return options;
}

// Does nothing for longer than a timeout, but answers.
void BeLate(Session* session) {
  const Deadline late(kLate);
  Backoff idle;
  while (!late.Passed()) {
    ASSERT_EQ(session->Poll(), absl::OkStatus());
    idle.Pause();
  }
}

void ExpectOver(const Run& run, const Bound& bound, uint64_t round) {
  ASSERT_EQ(run.Wait(), absl::OkStatus());
  EXPECT_EQ(bound.memory.Check(round), "");
}

TEST(PatienceTest, ALateStartIsWaitedFor) {
  for (const bool progress_thread : {false, true}) {
    RunSessions(3, Options(progress_thread), [](Rank& self, Session* session) {
      Bound bound = CompileBound(session, AllToAll(3, 8192));
      // The first run, which compares views, and a later one.
      for (uint64_t round = 1; round <= 2; ++round) {
        if (self.rank == 2) BeLate(session);
        const auto run = StartRun(session, &bound, round);
        ExpectOver(run, bound, round);
      }
    });
  }
}

std::atomic<int> lines_heard = 0;  // about a run that rank 1 has not started

TEST(PatienceTest, WhoeverWaitsSaysForWhom) {
  SetLineSink([](absl::string_view line) {
    if (absl::StartsWith(line, "waiting for run 1 (rank 1 has not started run 1")) ++lines_heard;
  });
  for (const bool progress_thread : {false, true}) {
    lines_heard = 0;
    RunSessions(2, Options(progress_thread), [](Rank& self, Session* session) {
      Bound bound = CompileBound(session, FromTo(1, 0), 1);
      Backoff idle;
      while (self.rank == 1 && lines_heard == 0) {
        ASSERT_EQ(session->Poll(), absl::OkStatus());
        idle.Pause();
      }
      ExpectOver(StartRun(session, &bound, 1), bound, 1);
    });
    EXPECT_GT(lines_heard, 0);
  }
  SetLineSink(nullptr);
}

// Rank 0 waits for rank 1, whose only slot waits for rank 2.
TEST(PatienceTest, WhoWaitsForOneThatIsPatientIsPatient) {
  for (const bool falls_silent : {false, true}) {
    RunRanks(3, [falls_silent](Rank& self) {
      SessionOptions options = Options();
      options.budget_buckets = 1;
      const auto session = OpenSession(self, options);
      std::vector<Bound> bounds;
      bounds.push_back(CompileBound(session.get(), FromTo(2, 1)));
      bounds.push_back(CompileBound(session.get(), FromTo(1, 0)));
      for (Bound& bound : bounds) RunOnce(session.get(), &bound, 1);
      if (self.rank == 2) BeLate(session.get());
      if (self.rank == 2 && falls_silent) {
        self.meet();
        EXPECT_THAT(AwaitError(session.get()), Fails(StatusCode::kDeadlineExceeded, "failed"));
        return;
      }
      std::vector<sluice::Run> runs;
      for (Bound& bound : bounds) runs.push_back(StartRun(session.get(), &bound, 2));
      if (!falls_silent) {
        for (size_t i = bounds.size(); i-- > 0;) ExpectOver(runs[i], bounds[i], 2);
        EXPECT_TRUE(session->Close().ok());
        return;
      }
      const absl::Status status = runs[1 - static_cast<size_t>(self.rank)].Wait();
      EXPECT_THAT(status, Fails(StatusCode::kDeadlineExceeded, "saw no progress for 2s"));
      EXPECT_THAT(std::string(status.message()),
                  AnyOf(HasSubstr("rank 2 has not answered"),
                        HasSubstr("held up by rank 2, which does not answer")));
      self.meet();
    });
  }
}

TEST(PatienceTest, LateCallsThatBlockAreWaitedFor) {
  RunRanks(3, [](Rank& self) {
    SessionOptions options = Options();
    options.progress_thread = self.rank == 1;  // which answers meanwhile
    const auto session = OpenSession(self, options);
    const auto late = [&](int rank) {
      if (self.rank == rank) BeLate(session.get());
    };
    late(0);
    Bound bound = CompileBound(session.get(), AllToAll(3, 4096));
    RunOnce(session.get(), &bound, 1);
    late(1);
    const auto memory = session->AllocateShared(4096);
    EXPECT_TRUE(memory.ok()) << memory.status();
    late(2);
    EXPECT_EQ(session->Drop(bound.transfer), absl::OkStatus());
    late(1);
    const auto connection = Connect(session.get(), {});
    EXPECT_TRUE(connection.ok()) << connection.status();
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(PatienceTest, LateCancelsAreWaitedFor) {
  RunSessions(3, Options(), [](Rank& self, Session* session) {
    Bound bound = CompileBound(session, AllToAll(3, 4096));
    const sluice::Run run = RunOnce(session, &bound, 1);
    if (self.rank == 0) BeLate(session);
    EXPECT_TRUE(run.Cancel().ok());
    EXPECT_TRUE(run.Wait().ok()) << "it was done before";
    // Compile waits for what ranks owe each other of before: rank 2 comes late to it.
    RunOnce(session, &bound, 2);
    if (self.rank == 2) BeLate(session);
    EXPECT_NE(CompileBound(session, Ring(3, 8)).transfer, nullptr);
  });
}

// Of a transfer that rank 0 has no part in, it can be far ahead, and then has to wait.
TEST(PatienceTest, WhoIsFarAheadWaitsForTheOthers) {
  RunSessions(3, Options(), [](Rank& self, Session* session) {
    Bound bound = CompileBound(session, FromTo(1, 2, {100}));
    RunOnce(session, &bound, 1);
    if (self.rank == 1) BeLate(session);
    constexpr auto kRuns = static_cast<uint64_t>(2 * Session::kMaxRunsInFlight);
    for (uint64_t round = 2; round <= kRuns; ++round) RunOnce(session, &bound, round);
    // A blocking call has to wait for a rank that has not started all the runs before it.
    if (self.rank == 2) BeLate(session);
    for (uint64_t round = 2; round <= kRuns; ++round) RunOnce(session, &bound, round);
    if (self.rank == 0) BeLate(session);
    EXPECT_TRUE(session->Drop(bound.transfer).ok());
  });
}

TEST(PatienceTest, PatienceMayEnd) {
  constexpr absl::Duration kPatience = absl::Seconds(3);
  // With a late first run, and a late later run. Rank 1 alone is patient without end, and answers.
  for (const bool later : {false, true}) {
    RunRanks(2, [&](Rank& self) {
      const auto session = OpenSession(self, self.rank == 0 ? Impatient(kPatience) : Options());
      Bound bound = CompileBound(session.get(), AllToAll(2, 4096));
      if (later) RunOnce(session.get(), &bound, 1);
      if (self.rank == 1) {
        EXPECT_THAT(AwaitError(session.get()),
                    Fails(StatusCode::kDeadlineExceeded, "rank 0 failed: rank "));
        self.meet();
        return;
      }
      EXPECT_THAT(
          StartRun(session.get(), &bound, 2).Wait(),
          Fails(StatusCode::kDeadlineExceeded,
                later ? AllOf(HasSubstr("rank 0 saw no progress for 3s; rank 1 has not "),
                              SaysOf(1, "has not started run 2"))
                      : AllOf(HasSubstr("rank 1 did not call Start within 3s; rank 1 has not "),
                              SaysOf(1, "has not started run 1: it has started none"))));
      self.meet();
    });
  }
}

TEST(PatienceTest, ALateRankDoesNotExcuseASilentOne) {
  RunRanks(3, [](Rank& self) {
    const auto session = OpenSession(self, Options());
    Bound bound = CompileBound(session.get(), AllToAll(3, 4096));
    RunOnce(session.get(), &bound, 1);
    if (self.rank == 0) {
      const absl::Status status = session->Compile(Ring(3, 8)).status();
      EXPECT_THAT(status, Fails(StatusCode::kDeadlineExceeded,
                                "ranks 1, 2 did not call Compile within 2s"));
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 answers, and has not called"));
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2 has not answered"));
    }
    if (self.rank == 1) {
      EXPECT_THAT(AwaitError(session.get()), Fails(StatusCode::kDeadlineExceeded, "rank 0 failed"));
    }
    self.meet();
  });
}

// A bucket waits for the silent one, and views are compared with the late one.
TEST(PatienceTest, ASilentRankIsNamedWhereAnotherOneIsLate) {
  RunRanks(3, [](Rank& self) {
    SessionOptions options = Options();
    options.budget_buckets = 1;
    const auto session = OpenSession(self, options);
    Bound long_one = CompileBound(session.get(), FromTo(1, 0));
    Bound new_one = CompileBound(session.get(), FromTo(1, 0));
    RunOnce(session.get(), &long_one, 1);
    const auto run = StartRun(session.get(), &long_one, 2);
    if (self.rank != 2) StartRun(session.get(), &new_one, 3);
    if (self.rank == 0) {
      const absl::Status status = run.Wait();
      EXPECT_THAT(status, Fails(StatusCode::kDeadlineExceeded, "rank 0 saw no progress for 2s"));
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 has not answered"));
    }
    if (self.rank == 2) {
      EXPECT_THAT(AwaitError(session.get()), Fails(StatusCode::kDeadlineExceeded, "rank 0 failed"));
    }
    self.meet();
  });
}

TEST(PatienceTest, RanksThatWaitForEachOtherInDifferentCallsAreNotLate) {
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, Options());
    Bound bound = CompileBound(session.get(), AllToAll(2, 4096));
    RunOnce(session.get(), &bound, 1);
    const absl::Status status = self.rank == 0 ? StartRun(session.get(), &bound, 2).Wait()
                                               : session->Compile(Ring(2, 8)).status();
    EXPECT_THAT(
        status,
        Fails(StatusCode::kDeadlineExceeded,
              AnyOf(SaysOf(1,
                           "has not started run 2: the last it has started is 1, and waits in "
                           "Compile"),
                    HasSubstr("rank 0 did not call Compile within 2s"))));
    self.meet();
  });
}

}  // namespace
}  // namespace sluice::session_test
