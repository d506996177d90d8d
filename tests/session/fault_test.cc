// Transports that go wrong: disorder and delay are borne, errors end the run on every rank.
#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "session/faulty_fabric.h"
#include "session/job.h"
#include "session/late_run.h"
#include "session/launch.h"

namespace sluice::session_test {
namespace {

using testing::HasSubstr;

std::string Text(const absl::Status& status) {
  return {status.message().begin(), status.message().end()};
}

TEST(FaultTest, DisorderAndDelayAreBorne) {
  for (const uint64_t seed : oracle::Seeds(80)) {
    const int size = 2 + static_cast<int>(seed % 4);
    const FaultPlan plan = {
        .seed = seed, .shuffle = true, .delay_polls_max = static_cast<int>(seed % 3) * 10};
    const RandomJob job = MakeRandomJob(seed, size);
    RunFaulty(size, -1, plan, [&](Rank& self) { RunJob(self, job, seed); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(FaultTest, DisorderAndDelayOfManyRunsAreBorne) {
  for (const uint64_t seed : oracle::Seeds(25)) {
    const int size = 2 + static_cast<int>(seed % 4);
    const FaultPlan plan = {
        .seed = seed, .shuffle = true, .delay_polls_max = static_cast<int>(seed % 3) * 10};
    const RandomJob job = MakeRandomJob(seed + 5000, size);
    RunFaulty(size, -1, plan,
              [&](Rank& self) { RunSchedule(self, job, {.seed = seed, .cancel_percent = 30}); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    RunFaulty(size, -1, plan, [&](Rank& self) { RunLateJob(self, job, seed); });
    ASSERT_FALSE(HasFailure()) << "late, seed " << seed;
  }
}

// One rank's part in a job of four runs of which one rank may fail. Returns the error.
absl::Status RunUntilError(Rank& self, Session* session, Bound* bound) {
  for (uint64_t round = 1; round <= 4; ++round) {
    bound->memory.Prepare(round);
    const auto run = session->Start(bound->transfer, bound->memory.src(), bound->memory.dst());
    if (!run.ok()) return run.status();
    absl::Status status = run->Wait();
    if (!status.ok()) return status;
    EXPECT_EQ(bound->memory.Check(round), "") << "rank " << self.rank;
  }
  return absl::OkStatus();
}

// What a fault did: the error of each rank, and whether Close took everything back.
struct Outcome {
  int failed = 0;
  int closed = 0;
};

Outcome RunOneFault(int size, int faulty, const FaultPlan& plan, absl::Duration timeout,
                    bool close) {
  std::atomic<int> failed = 0, closed = 0;
  RunFaulty(size, faulty, plan, [&](Rank& self) {
    const auto session =
        OpenSession(self, {.bucket_bytes = 1024,
                           .budget_buckets = 1 + static_cast<int64_t>(plan.seed % 5),
                           .timeout = timeout});
    Bound bound = CompileBound(session.get(), AllToAll(size, 4096), plan.seed);
    absl::Status error = RunUntilError(self, session.get(), &bound);
    self.meet();
    // By now the alarm has come to those that had finished before.
    if (error.ok()) error = session->Poll();
    if (error.ok()) return;  // the fault was beyond the end of the job
    ++failed;
    // A machine that stands still for longer than a short timeout makes a stall of it.
    if (close && absl::IsDeadlineExceeded(error)) {
      self.meet();
      return;
    }
    EXPECT_THAT(Text(error), HasSubstr(std::string(kInjected)));
    if (self.rank != faulty) {
      EXPECT_THAT(Text(error), HasSubstr(absl::StrCat("rank ", faulty, " failed")));
    }
    EXPECT_EQ(session->Poll(), error);
    EXPECT_EQ(session->Start(bound.transfer, {}, {}).status(), error);
    if (close) {
      const absl::Status status = session->Close();
      const bool is_closed = status.ok();
      closed += is_closed ? 1 : 0;
      if (is_closed) bound.memory.Prepare(200);
      if (!is_closed) {
        EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
      }
      self.meet();
      // Others may have gone on; memory that was given back is not touched any more.
      if (is_closed) {
        EXPECT_TRUE(bound.memory.Untouched(200)) << "after Close";
      }
    } else {
      self.meet();
    }
  });
  return {failed, closed};
}

FaultPlan RandomFault(uint64_t seed, int64_t size) {
  oracle::Dice dice(seed);
  FaultPlan plan = {
      .seed = seed, .shuffle = dice.Chance(50), .delay_polls_max = dice.Pick<int>({0, 0, 3, 20})};
  // Each run has 2 * (size - 1) * 4 operations per rank.
  const int64_t operations = 32 * (size - 1);
  switch (dice.Between(0, 2)) {
    case 0:
      plan.failing_event = dice.Between(0, operations - 1);
      break;
    case 1:
      plan.failing_start = dice.Between(0, operations / 2);
      break;
    default:
      plan.failing_poll = dice.Between(0, operations);
  }
  return plan;
}

TEST(FaultTest, ErrorsReachEveryRankByName) {
  int faults = 0;
  for (const uint64_t seed : oracle::Seeds(400)) {
    const int size = 2 + static_cast<int>(seed % 4);
    const int faulty = static_cast<int>(seed / 4) % size;
    const Outcome outcome =
        RunOneFault(size, faulty, RandomFault(seed, size), absl::Minutes(2), false);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    ASSERT_TRUE(outcome.failed == 0 || outcome.failed == size) << "seed " << seed;
    faults += outcome.failed > 0 ? 1 : 0;
  }
  EXPECT_GE(faults, oracle::Thinned(400) / 2);
}

TEST(FaultTest, MemoryIsFreeOnceCloseIsOk) {
  int closed = 0;
  for (uint64_t seed = 1001; seed <= 1012 || (closed == 0 && seed <= 1060); ++seed) {
    const int size = 2 + static_cast<int>(seed % 3);
    const int faulty = static_cast<int>(seed) % size;
    closed += RunOneFault(size, faulty, RandomFault(seed, size), absl::Seconds(1), true).closed;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(closed, 0);
}

TEST(FaultTest, CloseWaitsForWhatIsOnlyLate) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    RunFaulty(2, -1, {.seed = seed, .delay_polls_max = 40, .failing_event = 0}, [](Rank& self) {
      const auto session = OpenSession(self, {});
      // One send and one receive per rank, started together: a rank that fails leaves no other
      // alone with an operation that nobody meets.
      Bound bound = CompileBound(session.get(), Ring(2, 8));
      EXPECT_EQ(bound.transfer->stats().buckets, 2);
      EXPECT_FALSE(RunUntilError(self, session.get(), &bound).ok());
      EXPECT_EQ(session->Close(), absl::OkStatus());
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(FaultTest, AFabricThatBreaksEndsEveryRank) {
  for (const int64_t gather : {0, 1, 2}) {
    RunFaulty(3, 1, {.failing_gather = gather}, [&](Rank& self) {
      absl::Status error;
      auto session = Session::Create(std::move(self.fabric), SessionOptions());
      error.Update(session.status());
      Transfer* transfer = nullptr;
      const TransferSpec spec = AllToAll(3, 1024);
      RankMemory memory(spec, self.rank);
      if (error.ok()) {
        const auto compiled = (*session)->Compile(spec);
        error.Update(compiled.status());
        if (compiled.ok()) transfer = *compiled;
      }
      if (error.ok()) {
        const auto run = (*session)->Start(transfer, memory.src(), memory.dst());
        error.Update(run.status());
        if (run.ok()) error.Update(run->Wait());
      }
      EXPECT_THAT(Text(error), HasSubstr(std::string(kInjected))) << gather;
      self.meet();
    });
  }
}

TEST(FaultTest, ATransportThatCannotBeOpenedEndsEveryRank) {
  RunFaulty(3, 1, {.failing_open = true}, [](Rank& self) {
    auto session = Session::Create(std::move(self.fabric), SessionOptions());
    absl::Status error = session.status();
    if (session.ok()) error = (*session)->Compile(Ring(3, 1)).status();
    EXPECT_THAT(Text(error), HasSubstr(std::string(kInjected)));
    self.meet();
  });
}

}  // namespace
}  // namespace sluice::session_test
