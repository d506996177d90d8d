// Runs that are given up: on every rank, whatever each had done of them, and nothing else suffers.
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/job.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;

SessionOptions Small(int64_t slots) { return {.bucket_bytes = 1024, .budget_buckets = slots}; }

StartOptions Late() { return {.late_destinations = true}; }

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

// A tensor that rank 1 has for itself, and one from rank 0 to rank 2.
TransferSpec Apart() {
  TransferSpec spec = FromTo(1, 1, {50});
  spec.tensors.push_back(FromTo(0, 2, {50}).tensors[0]);
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
      EXPECT_THAT(AwaitError(session.get()),
                  Fails(StatusCode::kDeadlineExceeded,
                        "rank 1 called Cancel of run 1 but did not poll within 2s"));
    }
    self.meet();
  });
}

TEST(CancelTest, MayBeAskedForWhenItsRankIsFarAhead) {
  RunSessions(3, Small(2), [](Rank& self, Session* session) {
    Bound bound = CompileBound(session, Apart());
    Bound alone = CompileBound(session, FromTo(1, 1, {50}));
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

TEST(CancelTest, OfDifferentRunsIsNamed) {
  RunSessions(3, Small(2), [](Rank& self, Session* session) {
    Bound bound = CompileBound(session, AllToAll(3, 4096));
    const auto first = RunOnce(session, &bound, 1);
    const auto second = RunOnce(session, &bound, 2);
    EXPECT_TRUE((self.rank == 1 ? second : first).Cancel().ok());
    EXPECT_THAT(AwaitError(session),
                Fails(StatusCode::kFailedPrecondition,
                      "the run to cancel in Cancel: 1 on ranks 0, 2, 2 on rank 1"));
  });
}

}  // namespace
}  // namespace sluice::session_test
