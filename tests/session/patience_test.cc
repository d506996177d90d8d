// Ranks that are late and answer are waited for; ranks that are silent, or wait in a circle, are
// not.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/base/backoff.h"
#include "session/faulty_fabric.h"
#include "session/job.h"
#include "session/launch.h"
#include "sluice/connect.h"
#include "transport/deadline.h"
#include "transport/loopback/loopback.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;
using testing::AnyOf;
using testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(2);
constexpr absl::Duration kLate = absl::Seconds(3);

SessionOptions Options(bool progress_thread = false) {
  SessionOptions options;
  options.bucket_bytes = 1024;
  options.timeout = kTimeout;
  options.progress_thread = progress_thread;
  return options;
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
    const absl::Status status = session->Poll();
    ASSERT_TRUE(status.ok()) << status;
    idle.Pause();
  }
}

// The error that another rank's failure brings.
absl::Status PollUntilError(Session* session) {
  absl::Status status;
  Backoff idle;
  while (status.ok()) {
    status = session->Poll();
    idle.Pause();
  }
  return status;
}

void ExpectDeadline(const absl::Status& status, const std::string& text) {
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

// One rank to another.
TransferSpec FromTo(int src, int dst) {
  TransferSpec spec = Ring(2, 8);
  spec.tensors[0].src = MakeLayout({1}, {src}, "R");
  spec.tensors[0].dst = MakeLayout({1}, {dst}, "R");
  return spec;
}

Run StartRun(Session* session, Bound* bound, uint64_t round) {
  bound->memory.Prepare(round);
  const auto run = session->Start(bound->transfer, bound->memory.src(), bound->memory.dst());
  EXPECT_TRUE(run.ok()) << run.status();
  return run.value_or(Run());
}

void ExpectOver(const Run& run, const Bound& bound, uint64_t round) {
  const absl::Status status = run.Wait();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(bound.memory.Check(round), "");
}

TEST(PatienceTest, ALateStartIsWaitedFor) {
  for (const bool progress_thread : {false, true}) {
    RunRanks(3, [progress_thread](Rank& self) {
      const auto session = OpenSession(self, Options(progress_thread));
      ASSERT_NE(session, nullptr);
      Bound bound = CompileBound(session.get(), AllToAll(3, 8192));
      ASSERT_NE(bound.transfer, nullptr);
      // The first run, which compares views, and a later one.
      for (uint64_t round = 1; round <= 2; ++round) {
        if (self.rank == 2) BeLate(session.get());
        const sluice::Run run = StartRun(session.get(), &bound, round);
        ExpectOver(run, bound, round);
      }
      EXPECT_TRUE(session->Close().ok());
    });
  }
}

TEST(PatienceTest, AcrossATransportThatDelaysAndShuffles) {
  std::vector<std::unique_ptr<Fabric>> fabrics = MakeLoopbackFabrics({0, 0, 1});
  for (size_t rank = 0; rank < fabrics.size(); ++rank) {
    const FaultPlan plan = {.seed = rank + 1, .shuffle = true, .delay_polls_max = 20};
    fabrics[rank] = MakeFaultyFabric(std::move(fabrics[rank]), plan);
  }
  RunRanksOn(std::move(fabrics), [](Rank& self) {
    const auto session = OpenSession(self, Options());
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(3, 8192));
    ASSERT_NE(bound.transfer, nullptr);
    RunOnce(session.get(), &bound, 1);
    if (self.rank == 0) BeLate(session.get());
    const sluice::Run run = StartRun(session.get(), &bound, 2);
    ExpectOver(run, bound, 2);
    EXPECT_TRUE(session->Close().ok());
  });
}

// Rank 0 waits for rank 1, whose only slot waits for rank 2.
TEST(PatienceTest, WhoWaitsForOneThatIsPatientIsPatient) {
  for (const bool falls_silent : {false, true}) {
    RunRanks(3, [falls_silent](Rank& self) {
      SessionOptions options = Options();
      options.budget_buckets = 1;
      const auto session = OpenSession(self, options);
      ASSERT_NE(session, nullptr);
      std::vector<Bound> bounds;
      bounds.push_back(CompileBound(session.get(), FromTo(2, 1)));
      bounds.push_back(CompileBound(session.get(), FromTo(1, 0)));
      for (Bound& bound : bounds) {
        ASSERT_NE(bound.transfer, nullptr);
        RunOnce(session.get(), &bound, 1);
      }
      if (self.rank == 2) BeLate(session.get());
      if (self.rank == 2 && falls_silent) {
        self.meet();
        ExpectDeadline(PollUntilError(session.get()), "failed");
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
      ExpectDeadline(status, "saw no progress for 2s");
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
    ASSERT_NE(session, nullptr);
    const auto late = [&](int rank) {
      if (self.rank == rank) BeLate(session.get());
    };
    late(0);
    Bound bound = CompileBound(session.get(), AllToAll(3, 4096));
    ASSERT_NE(bound.transfer, nullptr);
    RunOnce(session.get(), &bound, 1);
    late(1);
    const auto memory = session->AllocateShared(4096);
    EXPECT_TRUE(memory.ok()) << memory.status();
    late(2);
    const absl::Status dropped = session->Drop(bound.transfer);
    EXPECT_TRUE(dropped.ok()) << dropped;
    late(1);
    const auto connection = Connect(session.get(), {});
    EXPECT_TRUE(connection.ok()) << connection.status();
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(PatienceTest, LateCancelsAreWaitedFor) {
  RunRanks(3, [](Rank& self) {
    const auto session = OpenSession(self, Options());
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(3, 4096));
    ASSERT_NE(bound.transfer, nullptr);
    const sluice::Run run = RunOnce(session.get(), &bound, 1);
    if (self.rank == 0) BeLate(session.get());
    EXPECT_TRUE(run.Cancel().ok());
    EXPECT_TRUE(run.Wait().ok()) << "it was done before";
    // Compile waits for what ranks owe each other of before: rank 2 comes late to it.
    RunOnce(session.get(), &bound, 2);
    if (self.rank == 2) BeLate(session.get());
    EXPECT_NE(CompileBound(session.get(), Ring(3, 8)).transfer, nullptr);
    EXPECT_TRUE(session->Close().ok());
  });
}

// Of a transfer that rank 0 has no part in, it can be far ahead, and then has to wait.
TEST(PatienceTest, WhoIsFarAheadWaitsForTheOthers) {
  RunRanks(3, [](Rank& self) {
    const auto session = OpenSession(self, Options());
    ASSERT_NE(session, nullptr);
    TransferSpec spec = FromTo(1, 2);
    spec.tensors[0].shape = {100};
    Bound bound = CompileBound(session.get(), spec);
    ASSERT_NE(bound.transfer, nullptr);
    RunOnce(session.get(), &bound, 1);
    if (self.rank == 1) BeLate(session.get());
    constexpr auto kRuns = static_cast<uint64_t>(2 * Session::kMaxRunsInFlight);
    for (uint64_t round = 2; round <= kRuns; ++round) RunOnce(session.get(), &bound, round);
    // A blocking call has to wait for a rank that has not started all the runs before it.
    if (self.rank == 2) BeLate(session.get());
    for (uint64_t round = 2; round <= kRuns; ++round) RunOnce(session.get(), &bound, round);
    if (self.rank == 0) BeLate(session.get());
    EXPECT_TRUE(session->Drop(bound.transfer).ok());
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(PatienceTest, PatienceMayEnd) {
  constexpr absl::Duration kPatience = absl::Seconds(3);
  // With a late first run, a late later run, and a late call that blocks. Rank 1 alone is patient
  // without end, and answers.
  for (const std::string what : {"first", "later", "compile"}) {
    RunRanks(2, [&](Rank& self) {
      const auto session = OpenSession(self, self.rank == 0 ? Impatient(kPatience) : Options());
      ASSERT_NE(session, nullptr);
      Bound bound = CompileBound(session.get(), AllToAll(2, 4096));
      ASSERT_NE(bound.transfer, nullptr);
      if (what == "later") RunOnce(session.get(), &bound, 1);
      if (self.rank == 1) {
        ExpectDeadline(PollUntilError(session.get()), "rank 0 failed: rank ");
        self.meet();
        return;
      }
      if (what == "compile") {
        ExpectDeadline(session->Compile(Ring(2, 8)).status(),
                       "rank 1 did not call Compile within 3s; rank 1 answers, and has not called");
      } else {
        const std::string text = what == "later"
                                     ? "rank 0 saw no progress for 3s; rank 1 has not started run 2"
                                     : "rank 1 did not call Start within 3s; rank 1 has not "
                                       "started run 1: it has started none";
        ExpectDeadline(StartRun(session.get(), &bound, 2).Wait(), text);
      }
      self.meet();
    });
  }
}

TEST(PatienceTest, ALateRankDoesNotExcuseASilentOne) {
  RunRanks(3, [](Rank& self) {
    const auto session = OpenSession(self, Options());
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(3, 4096));
    ASSERT_NE(bound.transfer, nullptr);
    RunOnce(session.get(), &bound, 1);
    if (self.rank == 0) {
      const absl::Status status = session->Compile(Ring(3, 8)).status();
      ExpectDeadline(status, "ranks 1, 2 did not call Compile within 2s");
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 answers, and has not called"));
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2 has not answered"));
    }
    if (self.rank == 1) ExpectDeadline(PollUntilError(session.get()), "rank 0 failed");
    self.meet();
  });
}

// A bucket waits for the silent one, and views are compared with the late one.
TEST(PatienceTest, ASilentRankIsNamedWhereAnotherOneIsLate) {
  RunRanks(3, [](Rank& self) {
    SessionOptions options = Options();
    options.budget_buckets = 1;
    const auto session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    Bound long_one = CompileBound(session.get(), FromTo(1, 0));
    Bound new_one = CompileBound(session.get(), FromTo(1, 0));
    ASSERT_TRUE(long_one.transfer != nullptr && new_one.transfer != nullptr);
    RunOnce(session.get(), &long_one, 1);
    const auto run = StartRun(session.get(), &long_one, 2);
    if (self.rank != 2) StartRun(session.get(), &new_one, 3);
    if (self.rank == 0) {
      const absl::Status status = run.Wait();
      ExpectDeadline(status, "rank 0 saw no progress for 2s");
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 has not answered"));
    }
    if (self.rank == 2) ExpectDeadline(PollUntilError(session.get()), "rank 0 failed");
    self.meet();
  });
}

TEST(PatienceTest, RanksThatWaitForEachOtherInDifferentCallsAreNotLate) {
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, Options());
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(2, 4096));
    ASSERT_NE(bound.transfer, nullptr);
    RunOnce(session.get(), &bound, 1);
    const absl::Status status = self.rank == 0 ? StartRun(session.get(), &bound, 2).Wait()
                                               : session->Compile(Ring(2, 8)).status();
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()),
                AnyOf(HasSubstr("rank 1 has not started run 2: the last it has started is 1, and "
                                "waits in Compile"),
                      HasSubstr("rank 0 did not call Compile within 2s")));
    self.meet();
  });
}

}  // namespace
}  // namespace sluice::session_test
