// Transfers that are dropped, and what a session keeps however long it lives.
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "session/launch.h"
#include "sluice/stream.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

void ExpectCode(const absl::Status& status, StatusCode code, const std::string& text) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

// Of the process, which all ranks share. 0 under sanitizers, which keep what was freed.
int64_t AddressSpaceBytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#endif
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

SessionOptions WithoutBudget() {
  SessionOptions options;
  options.bucket_bytes = 256 << 10;
  options.max_in_flight = 4;
  options.budget_buckets = kNoLimit;
  options.budget_bytes = kNoLimit;
  return options;
}

TEST(DropTest, ManyTransfersLeaveNothing) {
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, WithoutBudget());
    ASSERT_NE(session, nullptr);
    Bound kept = CompileBound(session.get(), AllToAll(2, 1 << 20), 1);
    ASSERT_NE(kept.transfer, nullptr);
    int64_t before = 0;
    for (uint64_t i = 1; i <= 300; ++i) {
      const auto transfer = session->Compile(AllToAll(2, 1 << 20));
      ASSERT_TRUE(transfer.ok()) << transfer.status();
      if (i % 75 == 0) Land(session.get(), Launch(session.get(), *transfer, i));
      ASSERT_TRUE(session->Drop(*transfer).ok());
      if (i == 10) before = AddressSpaceBytes();
    }
    // A transfer has 8 slots of 256 KiB on each rank.
    EXPECT_LT(AddressSpaceBytes() - before, 100 << 20);
    RunOnce(session.get(), &kept, 1);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(DropTest, StagingIsWhatChannelsCanFill) {
  constexpr int kTransfers = oracle::kSanitized ? 20 : 60;
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, WithoutBudget());
    ASSERT_NE(session, nullptr);
    ASSERT_NE(CompileBound(session.get(), AllToAll(2, 1 << 20)).transfer, nullptr);
    const int64_t before = AddressSpaceBytes();
    std::vector<Transfer*> transfers;
    for (int i = 0; i < kTransfers; ++i) {
      transfers.push_back(CompileBound(session.get(), AllToAll(2, 1 << 20)).transfer);
      ASSERT_NE(transfers.back(), nullptr);
      // One that fails although this rank could have had it.
      TransferSpec differs = AllToAll(2, 1 << 20);
      if (self.rank == 1) differs.tensors[0].name = "other";
      EXPECT_FALSE(session->Compile(differs).ok());
    }
    EXPECT_LT(AddressSpaceBytes() - before, kTransfers << 20);
    std::vector<Flight> flights;
    for (uint64_t i = 0; i < 8; ++i) {
      flights.push_back(Launch(session.get(), transfers[i * 2], i + 1));
    }
    for (const Flight& flight : flights) Land(session.get(), flight);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(DropTest, IsComparedAndNeedsAnIdleSession) {
  RunRanks(2, [](Rank& self) {
    SessionOptions options;
    options.bucket_bytes = 1024;
    const auto session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    Bound a = CompileBound(session.get(), AllToAll(2, 4096));
    Bound b = CompileBound(session.get(), AllToAll(2, 4096));
    ASSERT_NE(b.transfer, nullptr);
    ExpectCode(session->Drop(self.rank == 0 ? a.transfer : b.transfer),
               StatusCode::kFailedPrecondition,
               "the transfer to drop in Drop: 0 on rank 0, 1 on rank 1");
    ExpectCode(session->Drop(self.rank == 0 ? a.transfer : nullptr), StatusCode::kInvalidArgument,
               "not this session's");
    const Flight flight = Launch(session.get(), a.transfer, 1);
    ExpectCode(session->Drop(b.transfer), StatusCode::kFailedPrecondition, "runs are in flight: 1");
    Land(session.get(), flight);
    self.meet();
    EXPECT_TRUE(flight.run.Cancel().ok());
    EXPECT_TRUE(session->Drop(a.transfer).ok()) << "after the cancel";
    EXPECT_TRUE(flight.run.Wait().ok());
    const auto run = session->Start(a.transfer, {}, {});
    ExpectCode(run.status(), StatusCode::kInvalidArgument, "not this session's");
    RunOnce(session.get(), &b, 2);
    EXPECT_TRUE(session->Drop(b.transfer).ok());
    EXPECT_TRUE(session->Close().ok());
  });
}

// Compiles, runs and drops transfers of all sizes and classes in any order.
void CompileAndDrop(Rank& self, const std::vector<RandomJob>& jobs, uint64_t seed) {
  const auto session = OpenSession(self, jobs[0].options);
  ASSERT_NE(session, nullptr);
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
      ASSERT_NE(session, nullptr);
      Bound bound = CompileBound(session.get(), AllToAll(2, 1 << 10), 1);
      ASSERT_NE(bound.transfer, nullptr);
      RunOnce(session.get(), &bound, 1);
      ASSERT_TRUE(session->Close().ok());
      ExpectCode(OpenStream(session.get(), StreamOptions()).status(),
                 StatusCode::kFailedPrecondition, "OpenStream after Close");
      RunOnce(session.get(), &bound, 2);  // the caller drives it
      EXPECT_TRUE(session->Close().ok());
    });
  }
}

TEST(EventsTest, OfOldRunsAreDropped) {
  RunRanks(2, [](Rank& self) {
    SessionOptions options;
    options.bucket_bytes = 1024;
    const auto session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    Bound bound = CompileBound(session.get(), AllToAll(2, 4096));
    ASSERT_NE(bound.transfer, nullptr);
    constexpr int64_t kRuns = 500;
    for (int64_t number = 1; number <= kRuns; ++number) {
      StartOptions events;
      events.events = true;
      const auto run =
          session->Start(bound.transfer, bound.memory.src(), bound.memory.dst(), events);
      ASSERT_TRUE(run.ok()) << run.status();
      ASSERT_TRUE(run->Wait().ok());
    }
    int64_t next = kRuns - 63;
    for (Event event; session->PollEvent(&event); ++next) EXPECT_EQ(event.run.number(), next);
    EXPECT_EQ(next, kRuns + 1);
    EXPECT_TRUE(session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
