// Sessions with a progress thread: they go on while nobody calls, and end well in every state.
#include "session/progress_thread.h"

#include <string>

#include "base/fair_lock.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/base/backoff.h"
#include "session/faulty_fabric.h"
#include "session/job.h"
#include "session/late_run.h"
#include "session/launch.h"
#include "session/session_impl.h"
#include "transport/deadline.h"

namespace sluice::session_test {
namespace {

using testing::HasSubstr;

SessionOptions Threaded() {
  return {.bucket_bytes = 1024, .budget_buckets = 3, .progress_thread = true};
}

SessionOptions Impatient() {
  SessionOptions options = Threaded();
  options.timeout = options.patience = absl::Seconds(2);
  return options;
}

// Makes no call that would help the session on.
void UntilDone(const Session& session, RunId run) {
  const Deadline deadline(absl::Seconds(100));
  Backoff idle;
  while (!SessionImpl::Of(&session)->IsRunDone(run)) {
    ASSERT_FALSE(deadline.Passed()) << "run " << run << " does not end by itself";
    idle.Pause();
  }
}

TEST(ProgressThreadTest, RunsFinishWhileNobodyCalls) {
  RunRanks(3, [](Rank& self) {
    const auto session = OpenSession(self, Threaded());
    Bound bound = CompileBound(session.get(), AllToAll(3, 20000));
    for (uint64_t round = 1; round <= 5; ++round) {
      const auto run = StartRun(session.get(), &bound, round);
      UntilDone(*session, run.number());
      EXPECT_EQ(bound.memory.Check(round), "") << "round " << round;
      EXPECT_TRUE(run.Wait().ok());
    }
    ExpectWithinLimits(*session);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(ProgressThreadTest, SleepersWakeWithTheRunOrTheThreadsEnd) {
  RunSessions(2, {.bucket_bytes = 1024}, [](Rank&, Session* session) {
    Bound bound = CompileBound(session, AllToAll(2, 20000));
    FairLock lock;
    ProgressThread thread(SessionImpl::Of(session), &lock);
    EXPECT_TRUE(thread.SleepUntilDone(1, absl::InfiniteDuration())) << "there is no thread";
    const auto run = StartRun(session, &bound, 1);
    ASSERT_TRUE(thread.Start().ok());
    EXPECT_TRUE(thread.SleepUntilDone(run.number(), absl::InfiniteDuration()));
    EXPECT_EQ(bound.memory.Check(1), "");
    EXPECT_FALSE(thread.SleepUntilDone(run.number() + 1, absl::Milliseconds(1)));
    thread.Join();
    EXPECT_TRUE(thread.SleepUntilDone(run.number() + 1, absl::InfiniteDuration()));
    EXPECT_TRUE(run.Wait().ok());
  });
}

TEST(ProgressThreadTest, ARankThatComputesServesTheOthers) {
  RunRanks(3, [](Rank& self) {
    SessionOptions options = Threaded();
    options.progress_thread = self.rank == 1;
    const auto session = OpenSession(self, options);
    Bound bound = CompileBound(session.get(), AllToAll(3, 20000));
    const auto run = StartRun(session.get(), &bound, 1);
    if (self.rank != 1) {
      EXPECT_TRUE(run.Wait().ok());
    }
    self.meet();  // the others have all that they need of rank 1 before it makes its next call
    EXPECT_TRUE(run.Wait().ok());
    EXPECT_EQ(bound.memory.Check(1), "");
  });
}

TEST(ProgressThreadTest, ManyRunsAtOnce) {
  RunSessions(2, Threaded(), [](Rank&, Session* session) {
    const auto transfer = session->Compile(AllToAll(2, 4096)).value();
    std::vector<Flight> flights;
    for (uint64_t round = 1; round <= 12; ++round) {
      flights.push_back(Launch(session, transfer, round));
      EXPECT_LE(session->counters().buckets_peak, 3);
    }
    for (size_t i = flights.size(); i-- > 0;) Land(session, flights[i]);
  });
}

TEST(ProgressThreadTest, MemoryMayComeLate) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const int size = 1 + static_cast<int>(seed % 4);
    RandomJob job = MakeRandomJob(seed + 700, size);
    job.options.progress_thread = true;
    RunRanks(size, [&](Rank& self) { RunLateJob(self, job, seed); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(ProgressThreadTest, DisorderAndDelayAreBorne) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const int size = 2 + static_cast<int>(seed % 3);
    const FaultPlan plan{.seed = seed, .shuffle = true, .delay_polls_max = 10};
    RandomJob job = MakeRandomJob(seed + 900, size);
    job.options.progress_thread = true;
    RunFaulty(size, 1, plan, [&](Rank& self) { RunJob(self, job, seed); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(ProgressThreadTest, TheTraceMayBeReadMeanwhile) {
  RunRanks(2, [](Rank& self) {
    SessionOptions options = Threaded();
    options.trace_events = 1000;
    const auto session = OpenSession(self, options);
    Bound bound = CompileBound(session.get(), AllToAll(2, 20000));
    const auto run = StartRun(session.get(), &bound, 1);
    while (!run.IsDone()) EXPECT_FALSE(session->trace()->Serialize().empty());
    EXPECT_GT(session->trace()->size(), 0);
    EXPECT_EQ(session->trace()->rank(), self.rank);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(ProgressThreadTest, CloseIsRefusedWhileARunIsInFlight) {
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, Threaded());
    Bound bound = CompileBound(session.get(), AllToAll(2, 4096));
    RunOnce(session.get(), &bound, 1);
    bound.memory.Prepare(2);
    if (self.rank == 1) self.meet();
    const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst()).value();
    if (self.rank == 0) {
      EXPECT_EQ(session->Close().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(session->Compile(Ring(2, 1)).status().code(),
                absl::StatusCode::kFailedPrecondition);
      self.meet();
    }
    UntilDone(*session, run.number());  // the thread has gone on
    EXPECT_EQ(bound.memory.Check(2), "");
    EXPECT_TRUE(session->Close().ok());
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(ProgressThreadTest, ErrorsReachThoseWhoWaitAndThoseWhoDoNothing) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    FaultPlan plan = {.seed = seed};
    (seed % 2 == 0 ? plan.failing_event : plan.failing_start) = static_cast<int64_t>(seed % 7);
    RunFaulty(3, 1, plan, [](Rank& self) {
      const auto session = OpenSession(self, Threaded());
      Bound bound = CompileBound(session.get(), AllToAll(3, 8192));
      const auto run = StartRun(session.get(), &bound, 1);
      if (self.rank == 2) UntilDone(*session, run.number());
      const absl::Status error = run.Wait();
      EXPECT_THAT(std::string(error.message()), HasSubstr(std::string(kInjected)));
      EXPECT_EQ(session->Poll(), error);
      EXPECT_EQ(run.Wait(), error);
      EXPECT_EQ(session->Start(bound.transfer, {}, {}).status(), error);
      self.meet();
      // The session ends without Close, maybe with operations under way.
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(ProgressThreadTest, CloseAfterAFailure) {
  const FaultPlan plan{.delay_polls_max = 40, .failing_event = 0};
  RunFaulty(2, 1, plan, [](Rank& self) {
    const auto session = OpenSession(self, {.progress_thread = true});
    // One send and one receive per rank, started together, so that all operations end.
    Bound bound = CompileBound(session.get(), Ring(2, 8));
    EXPECT_EQ(bound.transfer->stats().buckets, 2);
    const auto run = StartRun(session.get(), &bound, 1);
    if (self.rank == 1) {
      EXPECT_FALSE(run.Wait().ok());
    } else {
      UntilDone(*session, run.number() + 1);  // which is when it has heard of the failure
    }
    EXPECT_EQ(session->Close(), absl::OkStatus());
    bound.memory.Prepare(2);
    self.meet();
    EXPECT_TRUE(bound.memory.Untouched(2)) << "after Close";
  });
}

TEST(ProgressThreadTest, IdleRanksHearOfFailuresAndAnswer) {
  RunRanks(3, [](Rank& self) {
    const auto session = OpenSession(self, Impatient());
    Bound bound = CompileBound(session.get(), AllToAll(3, 4096));
    RunOnce(session.get(), &bound, 1);
    if (self.rank == 2) {
      UntilDone(*session, 2);  // it never starts this run, and makes no call
      EXPECT_THAT(std::string(session->Poll().message()), HasSubstr("failed"));
      self.meet();
      return;
    }
    const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst()).value();
    EXPECT_THAT(run.Wait(), Fails(absl::StatusCode::kDeadlineExceeded,
                                  "has not started run 2: the last it has started is 1"));
    self.meet();
  });
}

TEST(ProgressThreadTest, EndsWithRunsInFlight) {
  RunRanks(2, [](Rank& self) {
    auto session = OpenSession(self, Threaded());
    Bound bound = CompileBound(session.get(), AllToAll(2, 4096));
    RunOnce(session.get(), &bound, 1);
    if (self.rank == 0) {
      EXPECT_TRUE(session->Start(bound.transfer, bound.memory.src(), bound.memory.dst()).ok());
      EXPECT_TRUE(session->Start(bound.transfer, bound.memory.src(), bound.memory.dst()).ok());
    }
    session.reset();
    self.meet();
  });
}

TEST(ProgressThreadTest, AFabricThatDoesNotAllowItIsAnErrorEverywhere) {
  const FaultPlan plan{.one_thread = true};
  for (const bool all_want_it : {true, false}) {
    RunFaulty(3, 1, plan, [all_want_it](Rank& self) {
      SessionOptions options = Threaded();
      options.progress_thread = all_want_it || self.rank == 1;
      const auto session = Session::Create(std::move(self.fabric), options);
      const std::string message(session.status().message());
      EXPECT_THAT(message, HasSubstr("progress_thread: injected fault in CheckOtherThread"));
      if (self.rank != 1) {
        EXPECT_THAT(message, HasSubstr("Create failed on rank 1"));
      }
    });
    // Nobody needs it where nobody asks for it.
    RunFaulty(3, 1, plan, [](Rank& self) {
      SessionOptions options = Threaded();
      options.progress_thread = self.rank != 1;
      EXPECT_NE(OpenSession(self, options), nullptr);
    });
  }
}

}  // namespace
}  // namespace sluice::session_test
