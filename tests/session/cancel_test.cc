// Runs that are given up: on every rank, whatever each had done of them, and nothing else suffers.
#include <array>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;

SessionOptions Small(int64_t slots) { return {.bucket_bytes = 1024, .budget_buckets = slots}; }

StartOptions Late() { return {.late_destinations = true}; }

// The events of `run`: how many say that it failed, and with which code.
int CountFailed(Session* session, Run run, StatusCode code) {
  int failed = 0;
  for (Event event; session->PollEvent(&event);) {
    EXPECT_EQ(event.run, run);
    if (event.kind != Event::Kind::kFailed) continue;
    EXPECT_EQ(event.status.code(), code) << event.status;
    ++failed;
  }
  return failed;
}

TEST(CancelTest, OfARunThatIsDoneChangesNothing) {
  RunSessions(3, Small(2), [](Rank& self, Session* session) {
    Bound bound = CompileBound(session, AllToAll(3, 4096));
    for (uint64_t round = 1; round <= 3; ++round) {
      const auto run = RunOnce(session, &bound, round);
      self.meet();  // done everywhere
      EXPECT_TRUE(run.Cancel().ok());
      EXPECT_THAT(run.Cancel(), Fails(StatusCode::kFailedPrecondition, "cancelled before"));
      EXPECT_TRUE(run.Wait().ok());
      EXPECT_THAT(run.Supply(0, TensorView()), Fails(StatusCode::kFailedPrecondition, "is over"));
      if (round == 2) {
        EXPECT_TRUE(session->Compile({}).ok()) << "waits for the cancel";
      }
    }
    EXPECT_THAT(sluice::Run().Cancel(), Fails(StatusCode::kInvalidArgument, "names no run"));
    EXPECT_THAT(sluice::Run().Supply(0, {}), Fails(StatusCode::kInvalidArgument, "names no run"));
  });
}

TEST(CancelTest, OfARunThatWasRefused) {
  RunSessions(3, Small(1), [](Rank& self, Session* session) {
    Bound bound = CompileBound(session, AllToAll(3, 4096));
    bound.memory.Prepare(1);
    const std::vector<TensorView> none(1);
    const auto run = session->Start(bound.transfer, bound.memory.src(),
                                    self.rank == 1 ? none : bound.memory.dst());
    ASSERT_TRUE(run.ok());
    EXPECT_TRUE(run->Cancel().ok());
    EXPECT_THAT(run->Wait(), Fails(StatusCode::kInvalidArgument, "destination of tensor 0"));
    EXPECT_TRUE(bound.memory.Untouched(1));
    RunOnce(session, &bound, 2);
  });
}

TEST(CancelTest, MayComeAfterAWaitForALaterRun) {
  RunSessions(2, Small(1), [](Rank& self, Session* session) {
    Bound bound = CompileBound(session, AllToAll(2, 8192));
    RunOnce(session, &bound, 9);
    const Flight first = Launch(session, bound.transfer, 1);
    const Flight second = Launch(session, bound.transfer, 2);
    if (self.rank == 0) Land(session, second);
    EXPECT_TRUE(first.run.Cancel().ok());
    Land(session, second);
    const absl::Status status = first.run.Wait();
    EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
  });
}

// Two tensors in one bucket, from rank 0 to rank 1.
TransferSpec Pair() {
  TransferSpec spec;
  for (const char* name : {"a", "b"}) {
    spec.tensors.push_back({.name = name,
                            .shape = {50},
                            .src = MakeLayout({1}, {0}, "R"),
                            .dst = MakeLayout({1}, {1}, "R")});
  }
  return spec;
}

TEST(CancelTest, TensorsOfADroppedBucketThatHaveMemoryGetTheirBytes) {
  for (const size_t supplied : {size_t{0}, size_t{1}}) {
    RunSessions(2, Small(2), [supplied](Rank& self, Session* session) {
      Bound bound = CompileBound(session, Pair());
      EXPECT_EQ(bound.transfer->stats().buckets, 1);
      RunOnce(session, &bound, 1);  // views have been compared
      std::vector<float> from(50, 3.f), to(50, -7.f);
      const TensorView src = DenseView(from.data(), {50}, DType::kF32);
      TensorView dst = DenseView(nullptr, {50}, DType::kF32);
      const auto run = session->Start(bound.transfer, {{src, src}}, {{dst, dst}}, Late()).value();
      for (int i = 0; i < 200; ++i) ASSERT_TRUE(session->Poll().ok());
      dst.data = to.data();
      if (self.rank == 1) {
        ASSERT_TRUE(run.Supply(static_cast<int>(supplied), dst).ok());
      }
      self.meet();  // rank 0 has admitted the bucket
      EXPECT_TRUE(run.Cancel().ok());
      EXPECT_THAT(run.Wait(), Fails(StatusCode::kCancelled, "was cancelled"));
      std::vector<int> done;
      for (Event event; session->PollEvent(&event);) {
        if (event.kind == Event::Kind::kTensorDone) done.push_back(event.tensor);
      }
      if (self.rank == 1) {
        EXPECT_THAT(done, testing::ElementsAre(static_cast<int>(supplied)));
        EXPECT_THAT(to, testing::Each(3.f));
      }
      RunOnce(session, &bound, 2);
    });
  }
}

// A tensor that rank 1 has for itself, and one from rank 0 to rank 2.
TransferSpec Apart() {
  TransferSpec spec = Pair();
  spec.tensors[0].src = spec.tensors[0].dst = MakeLayout({1}, {1}, "R");
  spec.tensors[1].dst = MakeLayout({1}, {2}, "R");
  return spec;
}

// One tensor that `rank` has for itself.
TransferSpec OnRank(int rank) {
  TransferSpec spec = Pair();
  spec.tensors.pop_back();
  spec.tensors[0].src = spec.tensors[0].dst = MakeLayout({1}, {rank}, "R");
  return spec;
}

TEST(CancelTest, WaitGoesOnUntilTheOthersNeedNoMore) {
  RunRanks(3, [](Rank& self) {
    SessionOptions options = Small(2);
    options.timeout = absl::Minutes(2);
    const auto session = OpenSession(self, options);
    Bound bound = CompileBound(session.get(), Apart());
    RunOnce(session.get(), &bound, 1);
    bound.memory.Prepare(2);
    std::vector<TensorView> dst = bound.memory.dst();
    dst[1].data = nullptr;
    const auto run = session->Start(bound.transfer, bound.memory.src(), dst, Late()).value();
    if (self.rank == 1) {
      EXPECT_TRUE(run.Wait().ok());
      EXPECT_TRUE(run.IsDone());
    }
    EXPECT_TRUE(run.Cancel().ok());
    const absl::Status status = run.Wait();
    EXPECT_EQ(status.ok(), self.rank == 1) << status;
    EXPECT_TRUE(run.IsDone());
    self.meet();  // until all others are done, nobody polls
    RunOnce(session.get(), &bound, 3);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(CancelTest, ARankThatDoesNotPollAfterItsCallIsNamed) {
  RunRanks(3, [](Rank& self) {
    SessionOptions options = Small(2);
    options.timeout = absl::Seconds(2);
    const auto session = OpenSession(self, options);
    Bound bound = CompileBound(session.get(), Apart());
    const auto run = RunOnce(session.get(), &bound, 1);
    if (self.rank != 1) self.meet();
    EXPECT_TRUE(run.Cancel().ok());
    if (self.rank == 1) self.meet();  // the first to call
    if (self.rank != 1) {
      EXPECT_EQ(run.Wait().code(), StatusCode::kOk);  // its part was done before
      absl::Status status;
      while (status.ok()) status = session->Poll();
      EXPECT_THAT(status, Fails(StatusCode::kDeadlineExceeded,
                                "rank 1 called Cancel of run 1 but did not poll within 2s"));
    }
    self.meet();
  });
}

TEST(CancelTest, MayBeAskedForWhenItsRankIsFarAhead) {
  RunSessions(3, Small(2), [](Rank& self, Session* session) {
    Bound bound = CompileBound(session, Apart());
    Bound alone = CompileBound(session, OnRank(1));
    bound.memory.Prepare(1);
    std::vector<TensorView> dst = bound.memory.dst();
    dst[1].data = nullptr;
    const auto run = session->Start(bound.transfer, bound.memory.src(), dst, Late()).value();
    if (self.rank != 1) {
      for (int i = 0; i < 100; ++i) ASSERT_TRUE(session->Poll().ok());
    }
    EXPECT_TRUE(run.Cancel().ok());
    for (uint64_t round = 2; round <= 100; ++round) {
      // What another rank had begun of run 1 is still carried out, in that rank's own time.
      while (round > Session::kMaxRunsInFlight && !run.IsDone()) ASSERT_TRUE(session->Poll().ok());
      RunOnce(session, &alone, round);
    }
    const absl::Status status = run.Wait();
    EXPECT_TRUE(absl::IsCancelled(status) || (status.ok() && self.rank == 1)) << status;
    RunOnce(session, &bound, 101);
  });
}

TEST(CancelTest, MemoryIsNotWaitedForAnyMore) {
  for (const int64_t slots : {1, 3}) {
    // Ranks 0 .. 2 send to each other; rank 3 has no part in it.
    RunSessions(4, Small(slots), [](Rank& self, Session* session) {
      Bound bound = CompileBound(session, AllToAll(3, 4096));
      Bound other = CompileBound(session, AllToAll(4, 4096));
      for (const bool everywhere : {true, false}) {
        session->ResetCounters();
        bound.memory.Prepare(1);
        // Where memory lacks nothing can be written, and nobody can send.
        const bool lacks = everywhere || self.rank == 1;
        const std::vector<TensorView> none(1);
        const auto run = session->Start(bound.transfer, bound.memory.src(),
                                        lacks ? none : bound.memory.dst(), Late());
        ASSERT_TRUE(run.ok()) << run.status();
        const Flight beside = Launch(session, other.transfer, 2);
        for (int i = 0; i < 100; ++i) ASSERT_TRUE(session->Poll().ok());
        self.meet();
        EXPECT_TRUE(run->Cancel().ok());
        Land(session, beside);
        const absl::Status status = run->Wait();
        if (self.rank == 3) {
          EXPECT_TRUE(status.ok()) << "it was done here: " << status;
          EXPECT_EQ(CountFailed(session, *run, StatusCode::kCancelled), 0);
        } else {
          EXPECT_THAT(status, Fails(StatusCode::kCancelled, "was cancelled"));
          EXPECT_EQ(CountFailed(session, *run, StatusCode::kCancelled), 1);
          EXPECT_THAT(run->Supply(0, bound.memory.dst()[0]),
                      Fails(StatusCode::kFailedPrecondition, "over"));
        }
        EXPECT_EQ(bound.memory.CheckSources(1), "");
        if (lacks) {
          EXPECT_TRUE(bound.memory.Untouched(1));
        }
        if (everywhere) {
          EXPECT_EQ(session->counters().buckets_finished, other.transfer->stats().buckets);
        }
        RunOnce(session, &bound, 5);
        self.meet();
      }
      ExpectWithinLimits(*session);
    });
  }
}

// Runs of which some ranks never get all their memory are cancelled; those beside them go on.
void CancelWithoutMemory(Rank& self, const RandomJob& job, uint64_t seed) {
  const auto session = OpenSession(self, job.options);
  const std::vector<Transfer*> transfers = CompileAll(session.get(), job.specs);
  oracle::Dice dice(seed * 100 + static_cast<uint64_t>(self.rank));
  for (uint64_t round = 1; round <= 4; ++round) {
    Transfer* const transfer = transfers[round % transfers.size()];
    RankMemory memory(transfer->spec(), self.rank, seed, self.accelerator);
    memory.Prepare(round);
    std::vector<TensorView> dst = memory.dst();
    bool complete = true;
    for (TensorView& view : dst) {
      if (view.data == nullptr || dice.Chance(50)) continue;
      view.data = nullptr;
      complete = false;
    }
    const auto run = session->Start(transfer, memory.src(), dst, Late()).value();
    const Flight beside = Launch(session.get(), transfers[0], round + 20);
    for (int64_t polls = dice.Between(0, 60); polls > 0; --polls) ASSERT_TRUE(session->Poll().ok());
    ASSERT_EQ(run.Cancel(), absl::OkStatus());
    Land(session.get(), beside);
    const absl::Status status = run.Wait();
    EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
    EXPECT_EQ(CountFailed(session.get(), run, StatusCode::kCancelled), status.ok() ? 0 : 1);
    EXPECT_EQ(memory.CheckSources(round), "");
    if (status.ok() && complete) {
      EXPECT_EQ(memory.Check(round), "");
    }
  }
  ExpectWithinLimits(*session);
  EXPECT_TRUE(session->Close().ok());
}

class CancelJobTest : public testing::TestWithParam<int> {};

TEST_P(CancelJobTest, WithMemoryThatNeverComes) {
  const int size = GetParam();
  for (const uint64_t seed : oracle::Seeds(60)) {
    const RandomJob job = MakeRandomJob(seed * 100 + static_cast<uint64_t>(size) + 90, size);
    RunRanks(size, [&](Rank& self) { CancelWithoutMemory(self, job, seed); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " with " << size << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CancelJobTest, testing::ValuesIn(oracle::JobSizes({1, 2, 3, 5, 8})),
                         testing::PrintToStringParamName());

TEST(CancelTest, OfDifferentRunsIsNamed) {
  RunSessions(3, Small(2), [](Rank& self, Session* session) {
    Bound bound = CompileBound(session, AllToAll(3, 4096));
    const auto first = RunOnce(session, &bound, 1);
    const auto second = RunOnce(session, &bound, 2);
    EXPECT_TRUE((self.rank == 1 ? second : first).Cancel().ok());
    absl::Status status;
    while (status.ok()) status = session->Poll();
    EXPECT_THAT(status, Fails(StatusCode::kFailedPrecondition,
                              "the run to cancel in Cancel: 1 on ranks 0, 2, 2 on rank 1"));
  });
}

TEST(CancelTest, AgainstAFirstStartIsNamed) {
  RunSessions(3, Small(2), [](Rank& self, Session* session) {
    std::array<Bound, 2> bounds = {CompileBound(session, AllToAll(3, 4096)),
                                   CompileBound(session, AllToAll(3, 4096))};
    const auto done = RunOnce(session, &bounds[0], 1);
    if (self.rank == 1) {
      EXPECT_TRUE(done.Cancel().ok());
    } else {
      const auto run =
          session->Start(bounds[1].transfer, bounds[1].memory.src(), bounds[1].memory.dst());
      EXPECT_TRUE(run.ok()) << run.status();
    }
    absl::Status status;
    while (status.ok()) status = session->Poll();
    EXPECT_THAT(status, Fails(StatusCode::kFailedPrecondition,
                              "ranks make different calls: Start on ranks 0, 2, Cancel on rank 1"));
  });
}

}  // namespace
}  // namespace sluice::session_test
