// Transfers that are dropped, and what a session keeps however long it lives.
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "session/launch.h"
#include "session/resident_bytes.h"
#include "sluice/stream.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;

SessionOptions WithoutBudget() {
  return {.bucket_bytes = 256 << 10,
          .max_in_flight = 4,
          .budget_buckets = kNoLimit,
          .budget_bytes = kNoLimit};
}

TEST(DropTest, ManyTransfersLeaveNothing) {
  RunSessions(2, WithoutBudget(), [](Rank&, Session* session) {
    Bound kept = CompileBound(session, AllToAll(2, 1 << 20), 1);
    int64_t before = 0;
    for (uint64_t i = 1; i <= 300; ++i) {
      const auto transfer = session->Compile(AllToAll(2, 1 << 20)).value();
      if (i % 75 == 0) Land(session, Launch(session, transfer, i));
      ASSERT_TRUE(session->Drop(transfer).ok());
      if (i == 10) before = WritableBytes();
    }
    // A transfer has 8 slots of 256 KiB on each rank.
    EXPECT_LT(WritableBytes() - before, 100 << 20);
    RunOnce(session, &kept, 1);
  });
}

TEST(DropTest, StagingIsWhatChannelsCanFill) {
  constexpr int kTransfers = oracle::kSanitized ? 20 : 60;
  RunSessions(2, WithoutBudget(), [](Rank& self, Session* session) {
    ASSERT_NE(CompileBound(session, AllToAll(2, 1 << 20)).transfer, nullptr);
    const int64_t before = WritableBytes();
    std::vector<Transfer*> transfers;
    for (int i = 0; i < kTransfers; ++i) {
      transfers.push_back(CompileBound(session, AllToAll(2, 1 << 20)).transfer);
      ASSERT_NE(transfers.back(), nullptr);
      // One that fails although this rank could have had it.
      TransferSpec differs = AllToAll(2, 1 << 20);
      if (self.rank == 1) differs.tensors[0].name = "other";
      EXPECT_FALSE(session->Compile(differs).ok());
    }
    EXPECT_LT(WritableBytes() - before, kTransfers << 20);
    std::vector<Flight> flights;
    for (uint64_t i = 0; i < 8; ++i) flights.push_back(Launch(session, transfers[i * 2], i + 1));
    for (const Flight& flight : flights) Land(session, flight);
  });
}

TEST(DropTest, IsComparedAndNeedsAnIdleSession) {
  RunSessions(2, {.bucket_bytes = 1024}, [](Rank& self, Session* session) {
    Bound a = CompileBound(session, AllToAll(2, 4096));
    Bound b = CompileBound(session, AllToAll(2, 4096));
    EXPECT_THAT(session->Drop(self.rank == 0 ? a.transfer : b.transfer),
                Fails(StatusCode::kFailedPrecondition,
                      "the transfer to drop in Drop: 0 on rank 0, 1 on rank 1"));
    EXPECT_THAT(session->Drop(self.rank == 0 ? a.transfer : nullptr),
                Fails(StatusCode::kInvalidArgument, "not this session's"));
    const Flight flight = Launch(session, a.transfer, 1);
    EXPECT_THAT(session->Drop(b.transfer),
                Fails(StatusCode::kFailedPrecondition, "runs are in flight: 1"));
    Land(session, flight);
    self.meet();
    EXPECT_TRUE(flight.run.Cancel().ok());
    EXPECT_TRUE(session->Drop(a.transfer).ok()) << "after the cancel";
    EXPECT_TRUE(flight.run.Wait().ok());
    const auto run = session->Start(a.transfer, {}, {});
    EXPECT_THAT(run.status(), Fails(StatusCode::kInvalidArgument, "not this session's"));
    RunOnce(session, &b, 2);
    EXPECT_TRUE(session->Drop(b.transfer).ok());
  });
}

// Compiles, runs and drops transfers of all sizes and classes in any order.
void CompileAndDrop(Rank& self, const std::vector<RandomJob>& jobs, uint64_t seed) {
  const auto session = OpenSession(self, jobs[0].options);
  oracle::Dice dice(seed);
  std::vector<Transfer*> live;
  uint64_t round = 0;
  const auto run_all = [&] {
    std::vector<Flight> flights;
    for (Transfer* const transfer : live) {
      ++round;
      flights.push_back(Launch(session.get(), transfer, round, seed + round));
    }
    for (const Flight& flight : flights) Land(session.get(), flight);
  };
  for (int step = 0; step < 30; ++step) {
    if (live.size() < 6 && dice.Chance(60)) {
      const RandomJob& job = dice.Pick(jobs);
      const auto transfer = session->Compile(dice.Pick(job.specs));
      // A reduction may need larger buckets than the session has.
      if (transfer.ok()) live.push_back(*transfer);
    } else if (!live.empty()) {
      const auto at = dice.Between(0, static_cast<int64_t>(live.size()) - 1);
      ASSERT_TRUE(session->Drop(live[static_cast<size_t>(at)]).ok());
      live.erase(live.begin() + at);
    }
    if (dice.Chance(40)) run_all();
    if (testing::Test::HasFailure()) return;
  }
  run_all();
  ExpectWithinLimits(*session);
  EXPECT_TRUE(session->Close().ok());
}

TEST(DropTest, OthersGoOn) {
  constexpr int kSize = 3;
  for (const uint64_t seed : oracle::Seeds(40)) {
    std::vector<RandomJob> jobs;
    for (uint64_t i = 0; i < 4; ++i) jobs.push_back(MakeRandomJob(seed * 100 + 40 + i, kSize));
    RunRanks(kSize, [&](Rank& self) { CompileAndDrop(self, jobs, seed); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(CloseTest, NoStreamBeginsAfterwards) {
  for (const bool progress_thread : {false, true}) {
    RunRanks(2, [progress_thread](Rank& self) {
      SessionOptions options = WithoutBudget();
      options.progress_thread = progress_thread;
      const auto session = OpenSession(self, options);
      Bound bound = CompileBound(session.get(), AllToAll(2, 1 << 10), 1);
      RunOnce(session.get(), &bound, 1);
      ASSERT_TRUE(session->Close().ok());
      EXPECT_THAT(OpenStream(session.get(), StreamOptions()).status(),
                  Fails(StatusCode::kFailedPrecondition, "OpenStream after Close"));
      RunOnce(session.get(), &bound, 2);  // the caller drives it
      EXPECT_TRUE(session->Close().ok());
    });
  }
}

TEST(EventsTest, OfOldRunsAreDropped) {
  RunSessions(2, {.bucket_bytes = 1024}, [](Rank&, Session* session) {
    Bound bound = CompileBound(session, AllToAll(2, 4096));
    constexpr int64_t kRuns = 500;
    for (int64_t number = 1; number <= kRuns; ++number) {
      const auto run =
          session->Start(bound.transfer, bound.memory.src(), bound.memory.dst(), {.events = true})
              .value();
      ASSERT_TRUE(run.Wait().ok());
    }
    int64_t next = kRuns - 63;
    for (Event event; session->PollEvent(&event); ++next) EXPECT_EQ(event.run.number(), next);
    EXPECT_EQ(next, kRuns + 1);
  });
}

}  // namespace
}  // namespace sluice::session_test
